package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/periodic"
)

// Health configures the health checks of targets. With an empty Path there are none.
type Health struct {
	Path     string        // of a GET
	Interval time.Duration // between two checks of one target
	Timeout  time.Duration // of one check, connecting included
	Fails    int           // failed checks in a row until a target is down
	Passes   int           // passed checks in a row until it is up again
}

// Checks are the health checks of path: two in a row bring a target back, since one alone may be luck.
func Checks(path string) Health {
	return Health{Path: path, Interval: 2 * time.Second, Timeout: time.Second, Fails: 3, Passes: 2}
}

// Passes reports whether a response with this status passes a health check.
func Passes(status int) bool { return status >= 200 && status < 400 }

// health is the result of one target's checks. A target is up until checks fail: an instance that has just started must
// not reject what it could serve.
type health struct {
	down          atomic.Bool
	passed, fails int           // in a row; the checking goroutine's own
	done          chan struct{} // closed when that goroutine has ended
	stop          context.CancelFunc
}

func (h *Health) validate() error {
	if h.Path == "" {
		return nil
	}
	unprintable := func(r rune) bool { return r <= ' ' || r >= 0x7f }
	if !strings.HasPrefix(h.Path, "/") || strings.ContainsFunc(h.Path, unprintable) {
		return fmt.Errorf("read health path %q: not a path", h.Path)
	}
	if h.Interval <= 0 || h.Timeout <= 0 || h.Fails <= 0 || h.Passes <= 0 {
		return errors.New("read health: interval, timeout, fails and passes must be more than 0")
	}
	return nil
}

// startChecks checks the target until stopChecks. Without a path there are no checks, and the target is up.
func (t *target) startChecks(h Health) {
	if h.Path == "" {
		t.health.down.Store(false)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	t.health.stop = stop
	t.health.done = make(chan struct{})
	go func() {
		defer close(t.health.done)
		periodic.Now(ctx, h.Interval, func(ctx context.Context) {
			if err := t.check(ctx, h); ctx.Err() == nil {
				t.recordCheck(h, err)
			}
		})
	}()
}

// stopChecks ends a check that is under way, and waits for the checking goroutine.
func (t *target) stopChecks() {
	if t.health.stop != nil {
		t.health.stop()
		<-t.health.done
		t.health.stop = nil
	}
}

// recordCheck counts one check's result.
func (t *target) recordCheck(h Health, err error) {
	s := &t.health
	t.faults.set(err)
	if err != nil {
		s.passed = 0
		if s.fails++; s.fails >= h.Fails && !s.down.Swap(true) {
			t.moveWaiters()
			t.log.Warn("target is down; it gets requests only while every target is down", "target", t.url, "err", err,
				"fix", Remedy(err))
		}
		return
	}
	s.fails = 0
	if s.passed++; s.passed >= h.Passes && s.down.Swap(false) {
		t.log.Info("target is up", "target", t.url)
	}
}

// errUnhealthy is a response that fails a check.
var errUnhealthy = errors.New("check health")

// check sends one request, on a connection of its own: the pool may be full.
func (t *target) check(ctx context.Context, h Health) error {
	start := time.Now()
	c, err := t.dial(ctx, h.Timeout)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	resp := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(resp)
	req := &Request{}
	req.Reset()
	req.Whole = true // a stream would be counted as a request's
	req.HTTP.Header.SetRequestURI(h.Path)
	for _, field := range [][2]string{{"Host", ""}, {"User-Agent", "sluice"}, {"Connection", "close"}} {
		req.HTTP.Header.Add(field[0], field[1])
	}
	bounds := timeouts{response: h.Timeout, total: h.Timeout}
	e := exchange{conn: c, start: start, timeouts: bounds}
	if outcome, _ := e.run(req, resp, t); outcome != Answered {
		return fmt.Errorf("check health: no response (%s): %w", outcome, cmp.Or(e.err, errUnhealthy))
	}
	if code := resp.StatusCode(); !Passes(code) {
		return fmt.Errorf("%w: status %d", errUnhealthy, code)
	}
	return nil
}

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

// failing reports whether the target was ejected and has not been reached since.
func (e *ejection) failing() bool { return e.fails.Load() >= ejectAfter }

// reached forgets all failures; it reports whether the target had been ejected.
func (e *ejection) reached() bool {
	if e.fails.Load() == 0 {
		return false
	}
	e.until.Store(0)
	return e.fails.Swap(0) >= ejectAfter
}
