package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Every limit by itself: what it refuses carries its reason in the answer, in the header and in the body, and counts once, under
// that reason and no other. The log of the gate says nothing of single requests.
func TestEveryLimitRefusesByItsOwnReasonAndCountsOnce(t *testing.T) {
	const held, all = "GET /held HTTP/1.1\r\nHost: shop\r\n\r\n", "limits.window.max_per_sku = 0\n"
	for _, c := range []struct {
		reason   string
		status   int
		settings string
		first    int  // requests that are in the shop meanwhile
		near     byte // from 127.0.0.near and those that follow
	}{
		{"conn_open", 429, all + "limits.connection.max_open = 2\nlimits.connection.max_open_per_ip = 1", 2, 1},
		{"ip_conns", 429, all + "limits.connection.max_open_per_ip = 1", 1, 9},
		{"denied_ip", 403, all + `limits.deny = ["127.0.0.9/32"]`, 0, 0},
		{"conn_rate", 429, all + "limits.connection.rate = \"1/h\"\nlimits.connection.burst = 1", 0, 0},
		{"rate", 429, all + "[[limits.rate]]\nname = \"one\"\nrate = \"1/h\"\nburst = 1", 0, 0},
		{"window", 429, all + "limits.window.size = \"1s\"\nlimits.window.max = 1\nlimits.window.carry = 0", 0, 0},
		{"concurrency", 429, all + "limits.concurrency.max_in_flight = 1\nlimits.concurrency.max_queue = 0", 1, 1},
		{"queue_timeout", 429, all + "limits.concurrency.max_in_flight = 1\nlimits.concurrency.queue_timeout = \"10ms\"", 1, 1},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			release, inside := make(chan struct{}), make(chan struct{}, 2)
			shop := open(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/held" {
					inside <- struct{}{}
					<-release
				}
			})
			defer close(release)
			g := gate(t, shop.setting(), `stock.source = "off"`, c.settings, fleetRoute)
			for i := range c.first {
				saying(t, from(t, g.front, c.near+byte(i)), held)
				<-inside
			}
			refused := 0
			c9 := from(t, g.front, 9)
			in := bufio.NewReader(c9)
			for start := time.Now(); refused < 2 && time.Since(start) < long; { // a window or a bucket may have room at first
				saying(t, c9, "GET / HTTP/1.1\r\nHost: shop\r\nAccept: application/json\r\n\r\n")
				a := answered(t, in)
				if a.status == http.StatusOK {
					continue
				}
				refused++
				a.must(t, c.status, c.reason)
				wants(t, a.body, `"`+c.reason+`"`)
				if a.closes {
					break
				}
			}
			g.counted(c.reason, refused)
			for _, l := range g.log.lines() {
				if strings.Contains(l.Msg, "refus") {
					t.Errorf("the log says %q", l.Msg)
				}
			}
		})
	}
}

// counted wants so many refusals for that reason, in one metric alone, and none for another.
func (g *running) counted(reason string, want int) {
	g.t.Helper()
	const requests, connections = "sluice_refused_requests_total", "sluice_refused_connections_total"
	of := `reason="` + reason + `"`
	if want == 0 {
		g.t.Error("nothing was refused")
	}
	if n := g.metric(requests, of) + g.metric(connections, of); n != float64(want) {
		g.t.Errorf("%v refusals for %s, want %d", n, reason, want)
	}
	if n := g.metric(requests) + g.metric(connections); n != float64(want) {
		g.t.Errorf("%v refusals for all reasons, want %d", n, want)
	}
}

// from dials from an address of this machine of the test's choice, 127.0.0.last.
func from(t *testing.T, address string, last byte) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, last)}, Timeout: long}
	c, err := d.Dial("tcp", address)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(2 * long))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func saying(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// answered reads one whole answer.
func answered(t *testing.T, in *bufio.Reader) answer {
	t.Helper()
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header.Get("X-Sluice-Reason"), string(b), resp.Header, resp.Close}
}
