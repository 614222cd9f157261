//go:build linux

package e2e

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// A poll is answered from memory, for about what a sold-out rejection costs. SLUICE_POLLS=200000 is the long form, for
// a machine that has time: it holds the ratio against 1.1.
func TestRoom_PollCostsWhatARejectionDoes(t *testing.T) {
	testkit.Nightly(t, "it measures CPU")
	n, most := 20_000, 2.0
	if long, err := strconv.Atoi(os.Getenv("SLUICE_POLLS")); err == nil {
		n, most = long, 1.1
	}
	gates, _ := roomGates(t, 1, time.Now().Add(30*time.Minute))
	g := gates[0]
	soon(t, "the room is open", func() bool { d, _ := g.room(t); return d.Phase == "pre_queue" })
	ann := &person{user: "ann"}
	ann.ask(t, g, "POST", "/join")

	shop := book(t, nil)
	sold := gate(t, redisAt(redistest.Start(t)), boundless, shop.setting(), reserveRoutes)
	ok(t, "stock", "set", "--config", sold.file, "1001", "1")
	first := &person{user: "first"}
	soon(t, "one is sold", func() bool { status, _ := first.order(t, sold); return status == 200 })
	soon(t, "it is sold out", func() bool { _, reason := ann.order(t, sold); return reason == "sold_out" })

	rejection := asking{gate: sold, method: "POST", path: "/api/seckill/1001/order"}
	polls := map[string]*asking{"the document": {gate: g, method: "GET", path: "/.sluice/room/rush"},
		"the own place": {gate: g, method: "GET", path: "/.sluice/room/rush/me"}}
	for _, a := range []*asking{&rejection, polls["the document"], polls["the own place"]} {
		a.cookie = "uid=ann; sluice_room=" + ann.ticket
	}
	const rounds = 8 // in turn, so that what else the machine does meets all of them
	for range rounds {
		rejection.ask(t, n/rounds)
		for _, a := range polls {
			a.ask(t, n/rounds)
		}
	}
	for name, a := range polls {
		ratio := a.each() / rejection.each()
		t.Logf("%s: %.2f µs of CPU, a rejection %.2f µs: %.2f of it", name, a.each(), rejection.each(), ratio)
		if ratio > most {
			t.Errorf("%s costs %.2f times as much CPU as a sold-out rejection", name, ratio)
		}
	}
}

// asking asks one thing again and again, and counts the CPU of the gate.
type asking struct {
	gate                 *running
	method, path, cookie string

	asked int
	cpu   time.Duration
}

// each is the CPU of one answer in µs.
func (a *asking) each() float64 { return float64(a.cpu.Microseconds()) / float64(a.asked) }

func (a *asking) ask(t *testing.T, n int) {
	t.Helper()
	const connections = 64
	before := a.gate.cpu()
	client := &fasthttp.HostClient{Addr: a.gate.front, MaxConns: connections, ReadTimeout: long}
	defer client.CloseIdleConnections()
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			var req fasthttp.Request
			var resp fasthttp.Response
			for left.Add(-1) >= 0 {
				req.Reset()
				req.SetRequestURI("http://" + a.gate.front + a.path)
				req.Header.SetMethod(a.method)
				req.Header.Set("Cookie", a.cookie)
				req.Header.Set("Accept", "application/json")
				if err := client.Do(&req, &resp); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	a.asked, a.cpu = a.asked+n, a.cpu+a.gate.cpu()-before
}
