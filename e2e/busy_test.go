package e2e

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	"sluice/internal/redistest"
)

// An order that finds all connections to the shop in use waits for one before it takes a unit. When none comes free it
// holds no unit, and its key can be used once more.
func TestReserve_BusyUpstreamLeavesUnitAndKey(t *testing.T) {
	t.Parallel()
	inside, leave := make(chan struct{}, 1), make(chan struct{})
	shop := book(t, func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Idempotency-Key") == "slow" {
			inside <- struct{}{}
			<-leave
		}
		return false
	})
	r := redistest.Start(t)
	g := gate(t, redisAt(r), shop.setting(), unhurried, "upstream.max_conns = 1", `upstream.queue_timeout = "200ms"`,
		reserveRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "2")
	ends := make(chan string)
	go func() {
		_, reason := (&buyer{user: "1", key: "slow"}).buy(g.front)
		ends <- reason
	}()
	<-inside
	for range 2 {
		second := &buyer{user: "2", key: "mine"}
		if status, reason := second.buy(g.front); status != 503 || reason != "upstream_busy" {
			t.Errorf("without a connection: %d %s", status, reason)
		}
		if a := ledgerOf(t, r, "1001"); a != (account{2, 1, 0}) {
			t.Errorf("ledger %+v, want the unit of the first order held alone", a)
		}
	}
	close(leave)
	if reason := <-ends; reason != "" {
		t.Errorf("the first order: %s", reason)
	}
	busy := 2
	soon(t, "the connection is free again", func() bool {
		status, reason := (&buyer{user: "2", key: "mine"}).buy(g.front)
		if reason == "upstream_busy" {
			busy++
			return false
		}
		if status != 200 || reason != "" {
			t.Fatalf("the same order by the same key, once the shop has room: %d %s", status, reason)
		}
		return true
	})
	soon(t, "all is settled", func() bool { return ledgerOf(t, r, "1001") == account{2, 0, 2} })
	g.counted("upstream_busy", busy)
}

// Clients that do not read a large file hold half of the connections for pages. The others serve pages on.
func TestUpstream_SlowDownloadsLeaveConnectionsForPages(t *testing.T) {
	t.Parallel()
	const size = 64 << 20 // more than any socket takes
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/file" {
			w.Header().Set("Content-Length", strconv.Itoa(size))
			_, _ = io.Copy(w, &pattern{size: size}) // until the client leaves
		}
	})
	g := gate(t, shop.setting(), unhurried, "upstream.max_conns = 8", `upstream.queue_timeout = "200ms"`, allPages)
	var slow []net.Conn
	for i := range 3 { // of six for pages
		c := dial(t, g.front)
		_, _ = io.WriteString(c, head("GET /file HTTP/1.1", host))
		slow = append(slow, c)
		soon(t, "it holds a connection", func() bool {
			return g.metric("sluice_upstream_held_connections") == float64(i+1)
		})
	}
	g.ask("GET", "/file").must(t, 503, "upstream_busy")
	for range 20 {
		g.ask("GET", "/").must(t, 200, "")
	}
	for _, c := range slow {
		c.Close()
	}
	soon(t, "none is held any more", func() bool { return g.metric("sluice_upstream_held_connections") == 0 })
}
