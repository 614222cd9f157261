package gateway

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/config"
	"sluice/limiter"
)

// windows are the window limiter in force. A reload that changes size, max_delay or warm_up begins a new one, in
// which nothing is booked: around that moment a window may admit twice its max. Changes are made one at a time.
type windows struct {
	now  atomic.Pointer[limiter.WindowLimiter]
	next *limiter.WindowLimiter // what prepare made
	laid config.Window          // what next was made by

	mu    sync.Mutex
	share limiter.Share
}

func newWindows(c *config.Config) *windows {
	w := &windows{}
	w.prepare(c)
	w.use(c)
	return w
}

// prepare is the limiter of c: the one in force, or a new one with a phase of this instance's own.
func (w *windows) prepare(c *config.Config) *limiter.WindowLimiter {
	by := c.Limits.Window
	if old := w.now.Load(); old != nil && by.Size == w.laid.Size && by.MaxDelay == w.laid.MaxDelay &&
		by.WarmUp == w.laid.WarmUp {
		w.next = old
		return old
	}
	grid := limiter.Grid{Size: by.Size, Phase: rand.N(by.Size), MaxAhead: by.DelayWindows()}
	caps := limiter.Caps{All: by.Max, PerSKU: by.MaxPerSKU, WarmUp: by.WarmUp}
	if old := w.now.Load(); old != nil {
		w.next = old.Successor(grid, caps)
	} else {
		w.next = limiter.NewWindowLimiter(grid, caps)
	}
	return w.next
}

// use puts into force what prepare has made for c.
func (w *windows) use(c *config.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.laid = c.Limits.Window
	w.next.SetCaps(c.Limits.Window.Max, c.Limits.Window.MaxPerSKU)
	w.next.SetShare(w.share)
	w.now.Store(w.next)
}

// SetShare has this instance admit its part alone, now and after a reload.
func (w *windows) SetShare(s limiter.Share) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.share = s
	w.now.Load().SetShare(s)
}

// Describe implements prometheus.Collector.
func (w *windows) Describe(to chan<- *prometheus.Desc) { w.now.Load().Describe(to) }

// Collect implements prometheus.Collector.
func (w *windows) Collect(to chan<- prometheus.Metric) { w.now.Load().Collect(to) }
