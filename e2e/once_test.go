package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// deeds are what a shop may do to an order after it has taken it. The order names its deed.
var deeds = map[string]deed{
	"answers":        func(c net.Conn, r *http.Request) bool { return says(c, reply("200 OK", r)) },
	"fails after it": func(c net.Conn, r *http.Request) bool { return says(c, reply("500 Internal Server Error", r)) },
	"has no time":    func(c net.Conn, r *http.Request) bool { return says(c, reply("503 Service Unavailable", r)) },
	"closes idle": func(c net.Conn, r *http.Request) bool {
		says(c, reply("200 OK", r))
		time.Sleep(time.Duration(len(r.Header.Get("Serial"))%3) * 500 * time.Microsecond) // the next order is on its way
		return false
	},
	"closes at once": func(c net.Conn, r *http.Request) bool { return says(c, reply("200 OK", r)) && false },
	"resets": func(c net.Conn, _ *http.Request) bool {
		_ = c.(*net.TCPConn).SetLinger(0)
		return false
	},
	"hangs up":    func(net.Conn, *http.Request) bool { return false },
	"hangs":       silence,
	"half a head": func(c net.Conn, _ *http.Request) bool { return says(c, "HTTP/1.1 200 OK\r\nContent-Le") && false },
	"half a body": func(c net.Conn, _ *http.Request) bool {
		return says(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nord") && false
	},
	"says more": func(c net.Conn, r *http.Request) bool {
		return says(c, reply("200 OK", r)+"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	},
}

func says(c net.Conn, text string) bool {
	_, err := io.WriteString(c, text)
	return err == nil
}

// reply is an answer that only the order's own sender must hear.
func reply(status string, r *http.Request) string {
	serial := r.Header.Get("Serial")
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(serial), serial)
}

// certain are the deeds after which the shopper hears what the shop said.
var certain = map[string]int{"answers": 200, "closes idle": 200, "closes at once": 200, "fails after it": 500,
	"has no time": 503}

// shopTimeout is how long the gate waits for what the shop says.
const shopTimeout = 500 * time.Millisecond

// Package upstream tests at most once as a contract, case by case. Here the built binary meets all of them at a time.
func TestOrder_ReachesTheShopAtMostOnce(t *testing.T) {
	t.Parallel()
	bad := misbehave(t, func(c net.Conn, r *http.Request) bool { return deeds[r.Header.Get("Deed")](c, r) })
	g := stocked(t, "upstream.targets = "+quoted(bad.url), unlimited,
		fmt.Sprintf("upstream.response_header_timeout = %q", shopTimeout), strings.Replace(routes, `"POST /api`, `"/api`, 1))
	const shoppers, rounds = 8, 2
	var all sync.WaitGroup
	for s := range shoppers {
		all.Go(func() {
			for name := range deeds { // in another order each time, so that each deed follows each
				for round := range rounds {
					for _, method := range []string{"POST", "PUT"} {
						attempt(t, g, bad, order{method, name, fmt.Sprintf("%s %s %d %d", method, name, s, round)})
					}
				}
			}
		})
	}
	all.Wait()
	for serial, n := range bad.serials {
		if n > 1 {
			t.Errorf("the shop saw order %s %d times", serial, n)
		}
	}
	total, arrived := shoppers*rounds*2*len(deeds), bad.arrivals.Load()
	t.Logf("%d orders sent, %d arrived; %.0f timed out, %.0f broke off", total, arrived,
		g.metric("sluice_upstream_requests_total", `code="timeout"`), g.metric("sluice_upstream_requests_total",
			`code="error"`))
	if int(arrived) < total/2 {
		t.Error("most orders never arrived: nothing was tried")
	}
}

type order struct{ method, deed, serial string }

// attempt sends one order and compares what its sender hears with what the shop saw. An order may be lost on a
// connection that the shop closes at that moment; its sender must then be told that nothing is known.
func attempt(t *testing.T, g *running, bad *rogue, o order) {
	r, err := http.NewRequest(o.method, "http://"+g.front+"/api/seckill/1001/order", strings.NewReader(`{"quantity":1}`))
	if err != nil {
		t.Error(err)
		return
	}
	r.Header = http.Header{"Cookie": {"uid=7"}, "Serial": {o.serial}, "Deed": {o.deed}}
	sent := time.Now()
	a, err := send(g.client, r)
	late := a.reason == "upstream_timeout" && time.Since(sent) >= shopTimeout // on a busy machine whatever the shop says
	switch seen := bad.seen(o.serial); {
	case err != nil:
		t.Errorf("%s: %v", o.serial, err)
	case seen == 0 && a.reason == "":
		t.Errorf("%s: never arrived, but was answered %d %s", o.serial, a.status, a.body)
	case seen == 1 && certain[o.deed] != 0 && !late && (a.status != certain[o.deed] || a.body != o.serial):
		t.Errorf("%s: answered %d %s", o.serial, a.status, a.body)
	case a.reason == "" && a.body != o.serial:
		t.Errorf("%s: got another order's answer: %d %s", o.serial, a.status, a.body)
	case a.reason != "" && a.reason != "upstream_error" && a.reason != "upstream_timeout":
		t.Errorf("%s: rejected with %d %s", o.serial, a.status, a.reason)
	}
}
