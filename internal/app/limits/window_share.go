package limits

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/app/stores"
	"sluice/limiter"
	"sluice/stockgate/fleet"
	"sluice/stockgate/namespace"
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

// WindowShare keeps the windows to this instance's part of what the configuration allows, and knows how many share the
// tries for units that came back to a shop that takes its stock itself.
type WindowShare struct {
	windows *windows
	now     func() int64
	metrics *prometheus.Registry
	log     *slog.Logger

	by     shares        // what is in force
	member *fleet.Member // nil where no instances are counted
	waits  atomic.Bool   // nothing is admitted until the instances are counted
	of     atomic.Int64  // instances; 0 = not known
}

// NewWindowShare shares the windows of these limiters from Begin on.
func NewWindowShare(of *Limiters, now func() int64, metrics *prometheus.Registry, log *slog.Logger) *WindowShare {
	return &WindowShare{windows: of.windows, now: now, metrics: metrics, log: log}
}

// shares is what says what is shared; the zero value is nothing.
type shares struct {
	name      namespace.Name // "" = no instance is counted
	instances int            // 0 = as many as are counted
	windows   bool           // not only tries
}

// counted reports whether the number of instances is counted in Redis.
func (s shares) counted() bool { return s.name != "" && s.instances == 0 }

func sharesOf(c *config.Config) shares {
	windows := c.Limits.Window.Scope == "fleet"
	if !windows && (c.Stock.Source != "redis" || !c.HasGate("check")) {
		return shares{}
	}
	return shares{stores.Name(c), c.Fleet.Instances, windows}
}

// Instances is how many share the tries, as far as is known.
func (s *WindowShare) Instances() int { return int(max(1, s.of.Load())) }

// Begin is Use for a gate that has not admitted anything: until the instances are counted it does not.
func (s *WindowShare) Begin(c *config.Config) error {
	if by := sharesOf(c); by.windows && by.instances == 0 {
		s.divide(limiter.Share{Rank: 1, Of: 1}) // no part
		s.waits.Store(true)
	}
	return s.Use(c, c)
}

// Use shares the windows as next wants it. c says how Redis is reached. Until instances are counted what was in force
// stays. An error changes nothing.
func (s *WindowShare) Use(c, next *config.Config) error {
	by := sharesOf(next)
	if by == s.by {
		return nil
	}
	var member *fleet.Member
	if by.counted() {
		var err error
		if member, err = s.newMember(c, by.name); err != nil {
			return c.Errorf("stock.redis", "%v", err)
		}
	}
	s.Close()
	s.by = by
	if !by.windows {
		s.divide(limiter.Share{})
	}
	if member != nil {
		s.member = member
		s.metrics.MustRegister(member)
		member.Join()
		return nil
	}
	s.of.Store(int64(by.instances))
	if by.windows {
		// No instance has a number. Turns taken at random are even on the average.
		s.divide(limiter.Share{Rank: rand.N(by.instances), Of: by.instances})
	}
	return nil
}

// newMember is this instance in the fleet of this name, before it joins.
func (s *WindowShare) newMember(c *config.Config, name namespace.Name) (*fleet.Member, error) {
	way := stores.RedisOptions(c)
	way.PoolSize = 1
	return fleet.New(fleet.Options{Redis: way, Name: name, Instance: stores.InstanceName(), Now: s.now,
		Tell: s.setShare, Log: s.log})
}

// setShare takes the part that falls to this instance.
func (s *WindowShare) setShare(to fleet.Share) {
	s.of.Store(int64(to.Of))
	if !s.by.windows {
		return
	}
	s.divide(limiter.Share{Rank: to.Rank, Of: to.Of, Clock: to.Clock})
}

func (s *WindowShare) divide(part limiter.Share) {
	s.windows.SetShare(part)
	s.waits.Store(false)
}

// IsCounted reports whether the instances are counted in Redis.
func (s *WindowShare) IsCounted() bool { return s.member != nil }

// Counted is the condition that this instance knows its part: without one it admits nothing.
func (s *WindowShare) Counted() (string, admin.Health) {
	if s.waits.Load() {
		return "not counted yet", admin.Unready
	}
	return "counted", admin.Healthy
}

// Close leaves the fleet.
func (s *WindowShare) Close() {
	if s.member != nil {
		s.member.Close()
		s.metrics.Unregister(s.member)
		s.member = nil
	}
}
