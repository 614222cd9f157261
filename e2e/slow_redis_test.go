package e2e

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// slowly stands between a gate and its Redis, and hands every answer over late, for as long as late says.
type slowly struct {
	addr string
	late atomic.Int64 // ns
}

func slow(t *testing.T, to string) *slowly {
	t.Helper()
	s := &slowly{}
	s.addr = redistest.Between(t, to, func(client, server *net.TCPConn) (there, back func()) {
		return nil, func() { s.answer(t, client, server) }
	})
	return s
}

// answer copies what Redis says.
func (s *slowly) answer(t *testing.T, to io.Writer, from io.Reader) {
	redistest.Pass(to, from, func([]byte) bool {
		select {
		case <-time.After(time.Duration(s.late.Load())):
			return true
		case <-t.Context().Done():
			return false
		}
	})
}

func checksAt(t *testing.T, r *redistest.Server, at string) *running {
	r.Client.Set(t.Context(), key, 1_000_000, 0)
	return gate(t, open(t, nil).setting(), unlimited, "stock.source = \"redis\"\nstock.redis.addresses = "+quoted(at))
}

func reservesAt(t *testing.T, _ *redistest.Server, at string) *running {
	g := gate(t, "stock.source = \"redis\"\nstock.redis.addresses = "+quoted(at), boundless, book(t, nil).setting(),
		reserveRoutes)
	soon(t, "the stock is set", func() bool { // a busy machine may be as late as a slow Redis
		return run(t, "", "stock", "set", "--config", g.file, "1001", "1000000").code == 0
	})
	return g
}

// Pages come at a steady rate, and so do orders, whether Redis answers or not: what differs is what the gate does.
func TestSlowRedis_DelaysOrdersAloneAndNotForLong(t *testing.T) {
	testkit.Nightly(t, "it measures latencies")
	t.Parallel()
	for name, at := range map[string]func(*testing.T, *redistest.Server, string) *running{
		"check": checksAt, "reserve": reservesAt,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			feel(t, at)
		})
	}
}

const (
	pagesEvery  = 3200 * time.Microsecond // of each connection; 5,000 in four turns, and as many of the control
	pageConns   = 2
	phase       = 2 * time.Second
	ordersEvery = 20 * time.Millisecond
	timeout     = 100 * time.Millisecond // stock.redis.timeout, as it is by default
)

// feel lets Redis be quick, slow, quick, slow …, so that what else the machine does is in both. A gate that needs no
// Redis is asked for as many pages: where that one is late too, it is the machine.
func feel(t *testing.T, at func(t *testing.T, r *redistest.Server, at string) *running) {
	r := redistest.Start(t)
	s := slow(t, r.Addr)
	g := at(t, r, s.addr)
	o := &stream{g: g, ends: make(chan struct{}), heard: map[string]int{}}
	go o.run()
	defer func() { o.stop.Store(true); <-o.ends }()
	last := func(status int64) func() bool {
		return func() bool { return o.last.Load() == status }
	}
	control := gate(t, open(t, nil).setting(), unlimited, "stock.source = \"off\"",
		strings.Replace(routes, `"check"`, `"limit"`, 1))
	var all [2]paced
	aside := paced{front: control.front, every: pagesEvery, conns: pageConns}
	// pages asks both gates at the same time.
	pages := func(to *paced) (own, beside spread) {
		var both sync.WaitGroup
		aside.took = nil
		both.Go(func() { aside.during(t, phase) })
		own = g.pages(t, to)
		both.Wait()
		return own, aside.spread()
	}
	judged, waited := 0, 0 // turns in which the machine was quick, and those of them in which pages were late all the same
	var ratios [3][]float64
	shares := [...]float64{0.5, 0.99, 0.999}
	for turn := range 4 {
		s.late.Store(0)
		again := soon(t, "orders pass", last(200))
		before, _ := pages(&all[0])
		s.late.Store(int64(3 * time.Second))
		soon(t, "orders are rejected", last(503))
		o.listen(true)
		opened := r.Number("stats", "total_connections_received:")
		during, beside := pages(&all[1])
		opened = r.Number("stats", "total_connections_received:") - opened
		o.listen(false)
		if before.at(0.99) < timeout/2 && beside.at(0.99) < timeout/2 {
			if judged++; during.at(0.99) >= timeout {
				waited++
			}
		}
		for i, share := range shares {
			ratios[i] = append(ratios[i], during.over(before, share))
		}
		t.Logf("turn %d: sold again after %v; p99 %v, then %v, of a gate without Redis %v, with %d connections opened", turn,
			again, before.at(0.99), during.at(0.99), beside.at(0.99), opened)
	}
	if waited > 1 && 2*waited > judged { // in a single turn it may be the machine
		t.Errorf("in %d of %d turns one page in a hundred took %v and more, as if it had waited for Redis", waited, judged,
			timeout)
	}
	before, during := all[0].spread(), all[1].spread()
	t.Logf("%d pages while Redis is quick: %v", len(before), before)
	t.Logf("%d pages while it is slow:     %v", len(during), during)
	for i, share := range shares {
		t.Logf("p%v, slow over quick: %.2f of all; by turns %.2f, median %.2f", 100*share, during.over(before, share),
			ratios[i], median(ratios[i]))
	}
	o.judge(t)
}

// pages asks for one phase's pages, and adds them to all.
func (g *running) pages(t *testing.T, all *paced) spread {
	t.Helper()
	time.Sleep(300 * time.Millisecond) // what has just changed is not what is asked for
	p := &paced{front: g.front, every: pagesEvery, conns: pageConns}
	p.during(t, phase)
	all.took = append(all.took, p.took...)
	return p.spread()
}

// stream is orders that come at a steady rate, each by another shopper.
type stream struct {
	g    *running
	stop atomic.Bool
	ends chan struct{}
	last atomic.Int64 // status

	mu      sync.Mutex
	listens int            // even = no
	heard   map[string]int // by orders that came and went while a client waited
	longest time.Duration
}

func (o *stream) listen(on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if on != (o.listens%2 == 1) {
		o.listens++
	}
}

func (o *stream) listening() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.listens
}

func (o *stream) run() {
	defer close(o.ends)
	var all sync.WaitGroup
	defer all.Wait()
	tick := time.NewTicker(ordersEvery)
	defer tick.Stop()
	for user := 0; !o.stop.Load(); user++ {
		<-tick.C
		all.Go(func() { o.one(user) })
	}
}

func (o *stream) one(user int) {
	was, began := o.listening(), time.Now()
	a := o.g.ask("POST", "/api/seckill/1001/order", "Cookie: uid="+fmt.Sprint(user))
	o.last.Store(int64(a.status))
	o.mu.Lock()
	defer o.mu.Unlock()
	if was%2 == 1 && was == o.listens {
		o.heard[fmt.Sprint(a.status, " ", a.reason)]++
		o.longest = max(o.longest, time.Since(began))
	}
}

// judge wants every order that came while Redis was slow to have heard why it is rejected.
func (o *stream) judge(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	const want = "503 stock_error"
	if len(o.heard) != 1 || o.heard[want] == 0 {
		t.Errorf("orders heard %v while Redis was slow; want %s", o.heard, want)
	}
	t.Logf("while Redis was slow %d orders heard %s, after %v at most", o.heard[want], want, o.longest)
}
