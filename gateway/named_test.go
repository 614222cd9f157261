package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice/config"
	"sluice/gateway/stores"
)

func TestApp_MetricsNameTheSKUsOfSalesAndNoMore(t *testing.T) {
	c := config.Default()
	c.Ops.MetricsMaxSKUs = 3
	c.Sales = []config.Sale{{SKUs: []string{"4", "2"}}, {SKUs: []string{"2", "1", "3"}}}
	if got := stores.LabelledSKUs(c); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("named %q", got)
	}
}

// Whatever shoppers ask for, the number of series stays: no label comes from a request.
func TestApp_SeriesDoNotGrowWithTheSKUsThatAreAsked(t *testing.T) {
	// More than any table of SKUs holds would take minutes; this is more than those of lessons and of holds do. check
	// looks at only so many new ones in a second.
	for gate, each := range map[string]int{"check": 10, "reserve": 20} {
		t.Run(gate, func(t *testing.T) {
			text := "upstream.targets = [\"http://127.0.0.1:1\"]\nstock.source = \"memory\"\nstock.poll_interval = " +
				"\"10ms\"\nstock.redis.timeout = \"1ms\"\nlimits.connection.max_connections_per_ip = 2000\n" +
				"limits.window.max_per_sku = 0\n" +
				"limits.connection.request_rate = \"1000000/s\"\naccess_log.output = \"off\"\n" +
				"[[route]]\nname = \"order\"\nmatch = \"POST /{sku}\"\nsku = \"$path_sku\"\ngate = \"" + gate + "\"\n"
			c, err := config.Parse("config.toml", []byte(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			g := gatewayOf(t, c)
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = g.Server.Serve(ln) }() // ends with drain
			defer g.Drain(10 * time.Second)
			ask(t, ln.Addr().String(), 0, 10)
			before := series(t, g)
			var crowd sync.WaitGroup
			for part := range 1000 { // together: a first look at a SKU may have to wait
				crowd.Go(func() { ask(t, ln.Addr().String(), part*each, part*each+each) })
			}
			crowd.Wait()
			if after := series(t, g); after > before+5 || before < 100 { // 5: for statuses that came first now
				t.Errorf("%d series, and %d when %d SKUs were asked for", before, after, 1000*each)
			}
		})
	}
}

// ask sends an order for each SKU of a range, all through one connection. Nothing of it is for sale.
func ask(t *testing.T, front string, from, to int) {
	t.Helper()
	conn, err := net.Dial("tcp", front)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	go func() { // ends with the connection
		out := bufio.NewWriterSize(conn, 64<<10)
		for sku := from; sku < to; sku++ {
			fmt.Fprintf(out, "POST /%d HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n", sku)
		}
		_ = out.Flush() // what did not arrive, the reader misses
	}()
	in := bufio.NewReaderSize(conn, 64<<10)
	for range to - from {
		answer, err := http.ReadResponse(in, nil)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
		}
		if err != nil || answer.Header.Get("X-Sluice-Reason") == "" {
			t.Errorf("%v, %v: want every order rejected", answer, err)
			return
		}
	}
}

// series counts what a scrape would carry, a histogram once; the runtime's own is not counted.
func series(t *testing.T, g *Gateway) (n int) {
	t.Helper()
	families, err := g.Metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if len(f.GetName()) > 7 && f.GetName()[:7] == "sluice_" {
			n += len(f.Metric)
		}
	}
	return n
}
