package upstream

import (
	"sync/atomic"
	"time"
)

const (
	ejectAfter = 3                // connect errors in a row
	ejectFirst = time.Second      // how long the first ejection lasts; each further one twice as long
	ejectMost  = 10 * time.Second // but never longer
)

// ejection keeps a target that cannot be connected to out of the choice for a while. Only connect
// errors count: what a shop answers is its own business, and an overloaded one must not lose half its
// targets to a time-out.
type ejection struct {
	fails atomic.Int32
	until atomic.Int64 // of the Pool's clock, in ns
}

// out reports whether the target is out of the choice at now.
func (e *ejection) out(now time.Duration) bool { return int64(now) < e.until.Load() }

// failed notes a connect error at now, and for how long it puts the target out. Errors of dials that
// were under way when the target was put out do not count again.
func (e *ejection) failed(now time.Duration) (out time.Duration) {
	if e.out(now) {
		return 0
	}
	n := e.fails.Add(1)
	if n < ejectAfter {
		return 0
	}
	out = min(ejectFirst<<min(n-ejectAfter, 10), ejectMost)
	e.until.Store(int64(now + out))
	return out
}

// reached forgets all failures; it reports whether the target had been put out.
func (e *ejection) reached() bool {
	if e.fails.Load() == 0 {
		return false
	}
	e.until.Store(0)
	return e.fails.Swap(0) >= ejectAfter
}

func (t *target) noteUnreached(err error) {
	if out := t.ejection.failed(t.clock.now()); out > 0 {
		t.log.Warn("target cannot be connected to", "target", t.url, "out", out, "error", err)
	}
}

func (t *target) noteReached() {
	if t.ejection.reached() {
		t.log.Info("target can be connected to again", "target", t.url)
	}
}
