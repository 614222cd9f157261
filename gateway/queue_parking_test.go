package gateway

import (
	"sync"
	"testing"
	"time"

	"sluice/proxy"
	"sluice/proxy/server"
)

// client is a connection whose request waits.
type client struct {
	mu      sync.Mutex
	resumed int
	gone    bool
	cannot  bool
}

func (c *client) Gone() bool    { return c.gone }
func (c *client) StepAside()    {}
func (c *client) Resumed() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.resumed > 0 }
func (c *client) Suspend() (resume func()) {
	if c.cannot {
		return nil
	}
	return func() { c.mu.Lock(); defer c.mu.Unlock(); c.resumed++ }
}

func lot() *parking {
	return &parking{orders: map[orderName]*parked{}, answers: map[server.Client]parkedAnswer{},
		filled: make(chan struct{}, 1)}
}

func inState(serial, state string) *proxy.WaitingOrder {
	return &proxy.WaitingOrder{SKU: "1", Serial: serial, State: state}
}

func TestParking_OnlyAnotherStateOfTheirOrderIsNews(t *testing.T) {
	p, now := lot(), time.Now()
	var a, b, c client
	for serial, some := range map[string][]*client{"a": {&a, &b}, "c": {&c}} {
		for _, one := range some {
			if !p.park(inState(serial, "queued"), one, now.Add(time.Second), now.Add(time.Minute)) {
				t.Fatal("no room for", serial)
			}
		}
	}
	p.found(inState("a", "queued"), now.Add(2*time.Second))
	p.found(inState("z", "sold"), now)
	if a.Resumed() || p.count() != 3 {
		t.Errorf("the same state is news: %d wait", p.count())
	}
	if due := p.due(now.Add(time.Second)); len(due["1"]) != 1 || due["1"][0] != "c" {
		t.Errorf("due are %v", due)
	}
	p.found(inState("a", "delivering"), now)
	if a.resumed != 1 || b.resumed != 1 || c.resumed != 0 || p.count() != 1 {
		t.Errorf("resumed %d, %d, %d; %d wait", a.resumed, b.resumed, c.resumed, p.count())
	}
	if o, ok := p.answer(&a); !ok || o.State != "delivering" {
		t.Errorf("it hears %+v, %v", o, ok)
	}
	if _, ok := p.answer(&a); ok {
		t.Error("it hears twice")
	}
}

func TestParking_EndsWithTheTimeTheClientAndTheDrain(t *testing.T) {
	p, now := lot(), time.Now()
	var short, gone, long, mute, other client
	gone.gone, mute.cannot = true, true
	for one, wait := range map[*client]time.Duration{&short: time.Second, &gone: time.Minute, &long: time.Minute} {
		p.park(inState("a", "queued"), one, now.Add(time.Hour), now.Add(wait))
	}
	if p.park(inState("a", "queued"), &mute, now, now.Add(time.Minute)) {
		t.Error("it parked a client that cannot wait")
	}
	if p.park(inState("a", "delivering"), &other, now, now.Add(time.Minute)) {
		t.Error("it parked a client that has seen another state")
	}
	p.sweep(now.Add(time.Second), false, false)
	if short.resumed != 1 || gone.resumed != 0 {
		t.Errorf("after a second: %d, %d", short.resumed, gone.resumed)
	}
	p.sweep(now.Add(time.Second), true, false)
	if gone.resumed != 1 || long.resumed != 0 {
		t.Errorf("when one has left: %d, %d", gone.resumed, long.resumed)
	}
	p.sweep(now.Add(time.Second), false, true)
	if long.resumed != 1 || p.count() != 0 || len(p.orders) != 0 {
		t.Errorf("at the drain: %d, %d wait", long.resumed, p.count())
	}
	if p.sweep(now.Add(time.Hour), false, false); len(p.answers) != 0 {
		t.Error("answers that no client fetches stay")
	}
}

func TestParking_MoreThanMaxWaitersAreAnsweredAtOnce(t *testing.T) {
	p, now := lot(), time.Now()
	p.clients = maxWaiters
	if p.park(inState("a", "queued"), new(client), now, now.Add(time.Minute)) {
		t.Error("there is no room")
	}
}
