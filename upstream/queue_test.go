package upstream

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/testkit"
)

// holding is an upstream whose requests wait until they are let go, one after the other.
func holding(t *testing.T) (server *rawServer, arrived chan string, letGo chan struct{}) {
	arrived, letGo = make(chan string, 1000), make(chan struct{})
	return newRawServer(t, func(v *visit) {
		v.each(func(head string) {
			arrived <- targetOf(head)
			<-letGo
			v.reply(ok(targetOf(head)))
		})
	}), arrived, letGo
}

// queued are options with which requests wait for a connection.
func queued(max int, conns int, urls ...string) Options {
	o := options(urls...)
	o.MaxConns, o.MaxPending, o.QueueTimeout = conns, max, 30*time.Second
	return o
}

// pageTo sends a page in a goroutine of its own, and returns its outcome by the channel.
func pageTo(p *Pool, target string, ends chan Outcome) {
	go func() { ends <- p.Send(newPage(target), new(fasthttp.Response)) }()
}

func waiting(p *Pool) int { return int(p.waits.now.Load()) }

// A burst of requests, many more than there are connections, is served in the order in which it came.
func TestQueue_FirstToComeIsServedFirst(t *testing.T) {
	server, arrived, letGo := holding(t)
	p := newPool(t, queued(100, 1, server.url()))
	ends := make(chan Outcome)
	const n = 20
	for i := range n {
		pageTo(p, fmt.Sprintf("/%d", i), ends)
		testkit.Eventually(t, "it waits", func() bool { return waiting(p) == i && p.Targets()[0].InFlight == 1 })
	}
	for i := range n {
		if got, want := <-arrived, fmt.Sprintf("/%d", i); got != want {
			t.Errorf("%s was served, and not %s", got, want)
		}
		letGo <- struct{}{}
		if outcome := <-ends; outcome != Answered {
			t.Errorf("outcome %v", outcome)
		}
	}
	if st := p.Targets()[0]; st.Open != 1 || waiting(p) != 0 || p.waits.ends[waitServed].Load() != n-1 {
		t.Errorf("%+v, %d wait, %d were served", st, waiting(p), p.waits.ends[waitServed].Load())
	}
}

func TestQueue_IsBoundedInNumber(t *testing.T) {
	server, arrived, letGo := holding(t)
	p := newPool(t, queued(1, 1, server.url()))
	ends := make(chan Outcome)
	pageTo(p, "/first", ends)
	<-arrived
	pageTo(p, "/second", ends)
	testkit.Eventually(t, "it waits", func() bool { return waiting(p) == 1 })
	if outcome := p.Send(newPage("/third"), new(fasthttp.Response)); outcome != Busy {
		t.Errorf("no room to wait: %v", outcome)
	}
	close(letGo)
	for range 2 {
		if outcome := <-ends; outcome != Answered {
			t.Errorf("the others: %v", outcome)
		}
	}
	if n := &p.waits.ends; n[waitServed].Load() != 1 || n[waitTimedOut].Load() != 0 || n[waitFull].Load() != 1 {
		t.Errorf("counted %v", n)
	}
	if server.count("/third") != 0 {
		t.Error("a request that was told to be busy was sent")
	}
}

// The upstream sees nothing of a request that gives up.
func TestQueue_IsBoundedInTime(t *testing.T) {
	server, arrived, letGo := holding(t)
	o := queued(1, 1, server.url())
	o.QueueTimeout = 50 * time.Millisecond
	p := newPool(t, o)
	ends := make(chan Outcome)
	pageTo(p, "/first", ends)
	<-arrived
	if outcome := p.Send(newPage("/second"), new(fasthttp.Response)); outcome != Busy {
		t.Errorf("waited too long: %v", outcome)
	}
	close(letGo)
	if outcome := <-ends; outcome != Answered {
		t.Errorf("the first: %v", outcome)
	}
	if n := &p.waits.ends; n[waitServed].Load() != 0 || n[waitTimedOut].Load() != 1 || n[waitFull].Load() != 0 {
		t.Errorf("counted %v", n)
	}
	if outcome := p.Send(newPage("/third"), new(fasthttp.Response)); outcome != Answered || server.count("/second") != 0 {
		t.Errorf("after the jam: %v; the second was sent %d times", outcome, server.count("/second"))
	}
}

// Orders have connections of their own: they do not wait behind pages.
func TestQueue_OrderDoesNotWaitBehindPages(t *testing.T) {
	server, arrived, letGo := holding(t)
	p := newPool(t, queued(100, 4, server.url()))
	ends := make(chan Outcome)
	const pages = 8 // of which three have a connection
	for i := range pages {
		pageTo(p, fmt.Sprintf("/page/%d", i), ends)
	}
	testkit.Eventually(t, "the others wait", func() bool { return waiting(p) == pages-3 })
	for range 3 {
		<-arrived
	}
	go func() { ends <- p.Send(newOrder("POST", "/order"), new(fasthttp.Response)) }()
	if got := <-arrived; got != "/order" {
		t.Errorf("%s came, and not the order", got)
	}
	close(letGo)
	for range pages + 1 {
		if outcome := <-ends; outcome != Answered {
			t.Errorf("outcome %v", outcome)
		}
	}
}

// What waits chooses again when a target is added.
func TestQueue_NewTargetServesIt(t *testing.T) {
	full, arrived, letGo := holding(t)
	added := newRawServer(t, echo)
	p := newPool(t, queued(100, 1, full.url()))
	ends := make(chan Outcome)
	pageTo(p, "/first", ends)
	<-arrived
	pageTo(p, "/second", ends)
	testkit.Eventually(t, "it waits", func() bool { return waiting(p) == 1 })
	if err := replace(p, []string{full.url(), added.url()}); err != nil {
		t.Fatal(err)
	}
	if outcome := <-ends; outcome != Answered || added.count("/second") != 1 {
		t.Errorf("outcome %v, the new target saw it %d times", outcome, added.count("/second"))
	}
	close(letGo)
	<-ends
}

// What waits at a target that goes down chooses again.
func TestQueue_TargetThatGoesDownKeepsNoneWaiting(t *testing.T) {
	down, arrived, hang := holding(t)
	other, atOther, letGo := holding(t)
	defer close(hang)
	o := queued(100, 1, down.url(), other.url())
	o.Policy = "first"
	p := newPool(t, o)
	ends := make(chan Outcome, 3)
	pageTo(p, "/down", ends)
	<-arrived
	pageTo(p, "/other", ends)
	<-atOther
	pageTo(p, "/waits", ends)
	first := p.targets.Load().all[0]
	testkit.Eventually(t, "it waits at the first", func() bool { return first.queue.length.Load() == 1 })
	first.recordCheck(Health{Fails: 1}, errUnhealthy)
	letGo <- struct{}{}
	if got := <-atOther; got != "/waits" {
		t.Errorf("%s came", got)
	}
	letGo <- struct{}{}
	for range 2 {
		if outcome := <-ends; outcome != Answered {
			t.Errorf("outcome %v", outcome)
		}
	}
}

// A connection that cannot be opened gives its place to the next request.
func TestQueue_FailedDialServesTheNext(t *testing.T) {
	p := newPool(t, queued(100, 1, closedPort(t)))
	ends := make(chan Outcome)
	for i := range 30 {
		pageTo(p, fmt.Sprintf("/%d", i), ends)
	}
	for range 30 {
		if outcome := <-ends; outcome != NotSent {
			t.Errorf("outcome %v, though no target can be reached", outcome)
		}
	}
}

func TestQueue_CloseEndsAllWaits(t *testing.T) {
	server, arrived, letGo := holding(t)
	p := newPool(t, queued(100, 1, server.url()))
	ends := make(chan Outcome)
	pageTo(p, "/first", ends)
	<-arrived
	pageTo(p, "/second", ends)
	testkit.Eventually(t, "it waits", func() bool { return waiting(p) == 1 })
	p.Close()
	if outcome := <-ends; outcome != NotSent {
		t.Errorf("after Close: %v", outcome)
	}
	close(letGo)
	<-ends
}

// gone is a client that has left.
type gone struct{}

func (gone) Gone() bool { return true }

func (gone) Interim([]byte) {}

// A client that left while its request waited does not occupy the upstream.
func TestQueue_ClientThatLeftIsPassedOver(t *testing.T) {
	server, arrived, letGo := holding(t)
	p := newPool(t, queued(100, 1, server.url()))
	ends := make(chan Outcome)
	pageTo(p, "/first", ends)
	<-arrived
	late := newPage("/gone")
	late.Client = gone{}
	goneEnds := make(chan Outcome)
	go func() { goneEnds <- p.Send(late, new(fasthttp.Response)) }()
	testkit.Eventually(t, "it waits", func() bool { return waiting(p) == 1 })
	pageTo(p, "/last", ends)
	testkit.Eventually(t, "it waits too", func() bool { return waiting(p) == 2 })
	letGo <- struct{}{}
	if outcome := <-goneEnds; outcome != Busy {
		t.Errorf("the client that left: %v", outcome)
	}
	if got := <-arrived; got != "/last" {
		t.Errorf("%s came", got)
	}
	letGo <- struct{}{}
	for range 2 {
		if outcome := <-ends; outcome != Answered {
			t.Errorf("outcome %v", outcome)
		}
	}
	if server.count("/gone") != 0 {
		t.Error("it was sent")
	}
}

// What Acquire takes is kept for one request, and is given back when that is not sent.
func TestPool_AcquiredConnectionIsUsedOrGivenBack(t *testing.T) {
	server := newRawServer(t, echo)
	o := queued(1, 1, server.url())
	o.QueueTimeout = 0
	p := newPool(t, o)
	for i := range 3 { // the first one has to dial
		kept, other := newOrder("POST", fmt.Sprintf("/kept/%d", i)), newOrder("POST", "/other")
		if !p.Acquire(kept) || p.Acquire(other) {
			t.Fatal("one connection is there for one request")
		}
		if outcome := p.Send(other, new(fasthttp.Response)); outcome != Busy {
			t.Errorf("without a connection: %v", outcome)
		}
		if i == 1 {
			p.Release(kept)
			p.Release(kept)
			if outcome := p.Send(other, new(fasthttp.Response)); outcome != Answered {
				t.Errorf("after Release: %v", outcome)
			}
			continue
		}
		if outcome := p.Send(kept, new(fasthttp.Response)); outcome != Answered {
			t.Errorf("with its connection: %v", outcome)
		}
		p.Release(kept)
	}
	if st, only := p.Targets()[0], p.targets.Load().all[0]; st.Open != 1 || st.Idle != 1 || only.orders != 0 {
		t.Errorf("%+v, %d orders", st, only.orders)
	}
}

// Whatever becomes of the connections, no place is lost, and no request waits for one that is free.
func TestQueue_NoPlaceIsLost(t *testing.T) {
	serve := func(v *visit) {
		for {
			head, _, err := v.request()
			switch {
			case err != nil:
				return
			case v.rand.IntN(5) == 0:
				v.reply("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
				return
			case v.rand.IntN(10) == 0:
				v.reset()
				return
			}
			v.reply(ok(targetOf(head)))
			if v.rand.IntN(5) == 0 {
				return // idle, and closed
			}
		}
	}
	p := newPool(t, queued(1000, 3, newRawServer(t, serve).url(), newRawServer(t, serve).url()))
	var crowd sync.WaitGroup
	var outcomes [NumOutcomes]atomic.Int64
	for range 24 {
		crowd.Go(func() {
			for i := range 60 {
				r := newOrder("POST", "/x")
				r.Order = rand.IntN(2) == 0
				if rand.IntN(3) == 0 && p.Acquire(r) && rand.IntN(2) == 0 {
					p.Release(r)
					continue
				}
				outcomes[p.Send(r, new(fasthttp.Response))].Add(1)
				_ = i
			}
		})
	}
	crowd.Wait()
	if n := outcomes[Busy].Load() + outcomes[TimedOut].Load(); n > 0 {
		t.Errorf("%d requests waited in vain", n)
	}
	for _, one := range p.targets.Load().all {
		one.mu.Lock()
		if one.open != len(one.idle) || one.orders != 0 || one.pages != 0 || one.counters.inFlight.Load() != 0 {
			t.Errorf("%d open, %d idle, %d orders, %d pages, %d in flight",
				one.open, len(one.idle), one.orders, one.pages, one.counters.inFlight.Load())
		}
		one.mu.Unlock()
	}
}
