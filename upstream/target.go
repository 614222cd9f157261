package upstream

import (
	"log/slog"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

// staleTries bounds how many pooled connections one request may find dead while writing to them.
// Further ones would be as dead: then a new one is opened.
const staleTries = 3

// target is one address of the shop: its connections, its health, its counters.
type target struct {
	*dialer
	maxConns int
	maxIdle  time.Duration
	patience patience
	retry    bool
	headers  *headers
	room     *room
	clock    clock
	log      *slog.Logger
	counters counters
	ejection ejection
	health   health

	mu      sync.Mutex
	idle    []*conn // the most recently used last
	slow    []*dial // who would take what is put back; the first to be so first
	open    int     // in use, idle, and being opened
	orders  int     // of those in use, or being opened for it
	pages   int     // the others of them
	retired bool
}

// clock counts from the Pool's start, on the monotonic clock.
type clock struct{ epoch time.Time }

func (c clock) now() time.Duration { return time.Since(c.epoch) }

// at is the instant that now has called d.
func (c clock) at(d time.Duration) time.Time { return c.epoch.Add(d) }

// send sends out to this target at most once, and counts what came of it. The clock is read twice: the caller did, at
// start, and the second time is when the exchange has ended.
func (t *target) send(out *proxy.Outgoing, resp *fasthttp.Response, start time.Duration, tun *tunnel) proxy.Outcome {
	t.counters.inFlight.Add(1)
	outcome, f, end := t.try(out, resp, start, tun)
	if f != lend {
		t.counters.inFlight.Add(-1)
	}
	t.counters.count(outcome, resp, end-start)
	return outcome
}

// try runs the exchange on a pooled connection or on a new one. That not one byte was written is the
// only ground for trying again.
func (t *target) try(out *proxy.Outgoing, resp *fasthttp.Response, start time.Duration, tun *tunnel) (_ proxy.Outcome, _ fate, end time.Duration) {
	var c *conn
	defer t.salvage(&c)
	for tries := 0; ; {
		var err error
		if c, err = t.take(out.Order, tries >= staleTries, start); err != nil {
			return proxy.NotSent, shut, t.clock.now()
		}
		if !c.reused { // what dialing took is bounded by the connect time-out
			start = t.clock.now()
		} else if c.idle > start { // put back meanwhile: whoever has waited for it waits for no other
			start, tries = c.idle, staleTries
		}
		e := exchange{patience: t.patience, conn: c, start: t.clock.at(start), tunnel: tun}
		outcome, f := e.run(out, resp, t)
		if f == stale {
			t.drop(c)
			c = nil
			continue
		}
		reused := c.reused
		end = t.clock.now()
		if f != lend {
			t.release(c, f, end)
		}
		c = nil
		if outcome != proxy.NotSent || !t.retry || !reused {
			return outcome, f, end
		}
		tries++
	}
}

// salvage closes the connection of an exchange that came to no end, because something panicked: the request alone is to be lost.
// nil = it came to one.
func (t *target) salvage(c **conn) {
	if *c != nil {
		t.drop(*c)
		t.counters.inFlight.Add(-1)
	}
}

// usable reports whether the target should get requests at now.
func (t *target) usable(now time.Duration) bool {
	return !t.health.down.Load() && !t.ejection.out(now)
}
