package upstream

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// maxStale bounds how many pooled connections may fail one request at its first byte, before a new one is opened.
const maxStale = 3

// target is one address of the upstream: its connections, its health, its counters. One lock keeps its idle
// connections, its dials and its bounds together.
type target struct {
	*dialer
	memory   *budget
	clock    clock
	log      *slog.Logger
	counters counters
	ejection ejection
	health   health
	faults   faults
	retrying atomic.Bool // to connect, after an ejection

	queue   queue
	mu      sync.Mutex
	idle    []*conn // the most recently used last
	waiting []*dial // slow dials that take what is put back; the first to wait first
	open    int     // in use, idle, and being opened
	orders  int     // of those in use, or being opened for it
	pages   int     // the others of them
	held    int     // those of pages that clients may hold for as long as they like
	retired bool
}

// clock counts from the Pool's start, on the monotonic clock.
type clock struct{ epoch time.Time }

func (c clock) now() time.Duration { return time.Since(c.epoch) }

// exchange sends req to this target at most once, and counts the outcome. c is the place's connection; nil = one has to be
// opened. start is the clock's time, which is read once more when the exchange has ended.
func (t *target) exchange(req *Request, resp *fasthttp.Response, c *conn, start time.Duration, tun *tunnel) Outcome {
	t.counters.inFlight.Add(1)
	outcome, d, end := t.try(req, resp, c, start, tun)
	if d != streaming {
		t.counters.inFlight.Add(-1)
	}
	t.counters.count(outcome, resp, end-start)
	return outcome
}

// try runs the exchange on a pooled connection or on a new one. It tries again only while not one byte was written.
func (t *target) try(req *Request, resp *fasthttp.Response, c *conn, start time.Duration, tun *tunnel) (
	_ Outcome, _ disposition, end time.Duration) {
	defer t.closeOnPanic(&c)
	s := t.settings.Load()
	for tries := 0; ; {
		var err error
		if c, err = t.ready(c, req, tries >= maxStale, start); err != nil {
			return NotSent, mustClose, t.clock.now()
		}
		c.bind(req.Owner)
		if !c.reused { // the dial has a timeout of its own
			start = t.clock.now()
		} else if c.returnedAt > start { // it was put back while this request waited, which waits for no second one
			start, tries = c.returnedAt, maxStale
		}
		e := exchange{timeouts: s.timeouts.of(req), conn: c, start: t.clock.epoch.Add(start), tunnel: tun}
		outcome, d := e.run(req, resp, t)
		if d == stale || outcome == NotSent && s.retry && c.reused {
			if d != stale {
				tries++
			}
			if c, err = t.replace(c, tries >= maxStale); err != nil {
				return NotSent, mustClose, t.clock.now()
			}
			continue
		}
		end = t.clock.now()
		if e.err != nil {
			t.logBroken(outcome, e.err)
		}
		if d != streaming {
			t.release(c, d, end)
		}
		c = nil
		return outcome, d, end
	}
}

// closeOnPanic closes the connection of an exchange in which something panicked: that request alone is lost.
// A nil connection means that the exchange has ended.
func (t *target) closeOnPanic(c **conn) {
	if *c != nil {
		t.drop(*c)
		t.counters.inFlight.Add(-1)
	}
}

// usable reports whether the target should get requests at now.
func (t *target) usable(now time.Duration) bool {
	return !t.health.down.Load() && !t.ejection.active(now)
}

// stop ends the checks and the look-ups, and closes the connections as retire does.
func (t *target) stop() {
	t.retire()
	t.stopChecks()
	t.resolver.close()
}
