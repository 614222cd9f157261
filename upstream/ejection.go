package upstream

import (
	"sync/atomic"
	"time"
)

const (
	ejectAfter    = 3                // connect errors in a row
	firstEjection = time.Second      // each further one lasts twice as long
	maxEjection   = 10 * time.Second // but never longer
)

// ejection keeps a target that cannot be connected to out of the choice for a while. Only connect errors count: an
// overloaded upstream must not lose half its targets to timeouts. It is safe for concurrent use.
type ejection struct {
	fails atomic.Int32
	until atomic.Int64 // of the Pool's clock, in ns
}

// active reports whether the target is out of the choice at now.
func (e *ejection) active(now time.Duration) bool { return int64(now) < e.until.Load() }

// failed counts a connect error at now, and returns for how long it ejects the target. Errors of dials that were under
// way when the target was ejected do not count again.
func (e *ejection) failed(now time.Duration) (ejected time.Duration) {
	if e.active(now) {
		return 0
	}
	n := e.fails.Add(1)
	if n < ejectAfter {
		return 0
	}
	ejected = min(firstEjection<<min(n-ejectAfter, 10), maxEjection)
	e.until.Store(int64(now + ejected))
	return ejected
}

// reached forgets all failures; it reports whether the target had been ejected.
func (e *ejection) reached() bool {
	if e.fails.Load() == 0 {
		return false
	}
	e.until.Store(0)
	return e.fails.Swap(0) >= ejectAfter
}

func (t *target) noteUnreached(err error) {
	if ejected := t.ejection.failed(t.clock.now()); ejected > 0 {
		t.log.Warn("target cannot be connected to", "target", t.url, "ejected_for", ejected, "error", err)
	}
}

func (t *target) noteReached() {
	if t.ejection.reached() {
		t.log.Info("target can be connected to again", "target", t.url)
	}
}
