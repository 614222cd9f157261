package e2e

import (
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"sluice/config"
	"sluice/internal/redistest"
)

// rewrite changes the configuration of a running gate, and waits until it has been read: good or bad.
func (g *running) rewrite(text string, good bool) {
	g.t.Helper()
	want := 0.0
	if good {
		want = 1
	}
	before := len(g.log.lines())
	put(g.t, g.file, text) // the gate looks at its file also by itself
	if err := g.process.Process.Signal(syscall.SIGHUP); err != nil {
		g.t.Fatal(err)
	}
	said, version := "configuration not reloaded", ""
	if good {
		c, err := config.Parse(g.file, []byte(text), os.LookupEnv)
		if err != nil {
			g.t.Fatal(err)
		}
		said, version = "configuration reloaded", c.Version()
	}
	// A line of the file before may still be on its way: a good file is told by its version.
	soon(g.t, said, func() bool {
		for _, l := range g.log.lines()[before:] {
			if strings.HasPrefix(l.Msg, said) && (!good || l.Config == version) {
				return true
			}
		}
		return false
	})
	g.wantMetric(want, "sluice_config_last_reload_successful")
}

// A reload loses nothing: no connection, no counter; and a bad file changes nothing.
func TestReload_UnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := gate(t, shop.setting(), `stock.source = "off"`, unlimited, "limits.concurrency.max_in_flight = 100",
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"")
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var crowd sync.WaitGroup
	var answered, connections atomic.Int64
	for range 8 {
		crowd.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: long}
			defer client.CloseIdleConnections()
			connections.Add(1)
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := client.Post("http://"+g.front+"/", "text/plain", strings.NewReader("hello"))
				if err != nil {
					t.Errorf("a shopper noticed: %v", err)
					return
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
					t.Errorf("a shopper noticed: %d, %v", resp.StatusCode, err)
				}
				resp.Body.Close()
				answered.Add(1)
			}
		})
	}
	served := 0.0
	for i := range 20 {
		good := strings.Replace(string(text), "max_in_flight = 100", "max_in_flight = "+[]string{"100", "200"}[i%2], 1)
		g.rewrite(good, true)
		g.rewrite(strings.Replace(good, "max_in_flight", "max_in_fligth", 1), false)
		now := g.metric("sluice_http_requests_total", `route="all"`)
		if now < served {
			t.Errorf("the counter fell from %v to %v", served, now)
		}
		served = now
	}
	close(stop)
	crowd.Wait()
	t.Logf("%d requests on %d connections answered during 40 reloads", answered.Load(), connections.Load())
	g.logs(t, `limits.concurrency.max_in_fligth: unknown key; did you mean \"max_in_flight\"?`,
		"limits.concurrency.max_in_flight")
}

// What a reload changes is obeyed by the next request, on a connection that was open before; what needs a restart is
// told.
func TestReload_AppliesAtOnce(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := stocked(t, shop.setting(), `mode = "enforce"`)
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	g.order("7777").must(t, 404, "unknown_sku")
	observing := strings.Replace(string(text), `mode = "enforce"`, `mode = "observe"`, 1)
	g.rewrite(observing, true)
	g.order("7777").must(t, 200, "")
	g.rewrite(observing+"\n[stock.reserve]\nhold = \"1ms\"\n", false)
	g.order("7777").must(t, 200, "")
	g.rewrite(string(text), true)
	g.order("7777").must(t, 404, "unknown_sku")
}

// A file that changes a key which only a restart changes is rejected as a whole, and names each such key.
func TestReload_KeyThatNeedsARestartRejectsTheWholeFile(t *testing.T) {
	t.Parallel()
	g := stocked(t, open(t, nil).setting(), `mode = "enforce"`)
	before := g.change(`mode = "enforce"`, `mode = "enforce"`)
	g.rewrite(g.change(`mode = "enforce"`, "mode = \"observe\"\nops.metrics_max_skus = 7\n"+
		"stock.reserve.stream_keep_unread = true"), false)
	g.order("7777").must(t, 404, "unknown_sku")
	g.logs(t, "configuration not reloaded", "ops.metrics_max_skus: changes only with a restart",
		"stock.reserve.stream_keep_unread: changes only")
	if status, text := g.peek("/readyz"); status != 200 || !strings.HasPrefix(text, "degraded; reload: the file was rejected") {
		t.Errorf("/readyz: %d %q", status, text)
	}
	wants(t, run(t, "", "status", "--admin", "http://"+g.admin).out, "ops.metrics_max_skus: changes only with a restart")
	g.rewrite(before, true)
	if _, text := g.peek("/readyz"); text != "ready\n" {
		t.Errorf("/readyz after the file went back: %q", text)
	}
}

// What the shop's stock is read by changes with the file. What names another Redis rejects the whole file.
func TestReload_StockIsReadAsTheNewFileSays(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	r.Client.Set(t.Context(), "old:1001", 0, 0)
	r.Client.Set(t.Context(), "new:1001", 5, 0)
	shop := open(t, nil)
	const before = "stock.layout.key = \"old:$sku\""
	g := gate(t, shop.setting(), redisAt(r), before, routes)
	g.order("1001").must(t, 409, "sold_out")
	g.order("7777").must(t, 404, "unknown_sku")
	text := g.change(before, "stock.layout.key = \"new:$sku\"\nstock.unknown_sku = \"allow\"")
	g.rewrite(text, true)
	g.order("1001").must(t, 200, "")
	g.order("7777").must(t, 200, "")
	other := strings.Replace(text, "new:$sku", "old:$sku", 1)
	g.rewrite(strings.Replace(other, `stock.redis.timeout = "1s"`, `stock.redis.timeout = "2s"`, 1), false)
	g.logs(t, "configuration not reloaded", "stock.redis.timeout: changes only with a restart")
	g.order("1001").must(t, 200, "")
}
