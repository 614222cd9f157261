package limits

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/app/stores"
	"sluice/limiter"
	"sluice/stockgate/lease"
)

// leases are this instance's parts of the keyed rates, and of the concurrency limit, that all instances share. Where
// nothing is shared there is no connection.
type leases struct {
	now func() int64
	log *slog.Logger

	mu     sync.Mutex
	keeper *lease.Keeper
}

// use shares what c says. An error is logged, and then this instance has no part.
func (l *leases) use(c *config.Config, budgets map[string]lease.Budget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(budgets) == 0:
		l.end()
		return
	case l.keeper != nil:
		l.keeper.Use(budgets)
		return
	}
	way := stores.RedisOptions(c)
	way.PoolSize = 1
	keeper, err := lease.New(lease.Options{Redis: way, Name: stores.Name(c), Instance: stores.InstanceName(),
		Now: l.now, Log: l.log})
	if err != nil {
		l.log.Error("cannot share the limits of the fleet; they admit nothing", "err", err)
		return
	}
	keeper.Use(budgets)
	keeper.Start()
	l.keeper = keeper
}

// close gives the parts back.
func (l *leases) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// end is close. mu is held.
func (l *leases) end() {
	if l.keeper != nil {
		l.keeper.Close()
		l.keeper = nil
	}
}

// current is nil where nothing is shared.
func (l *leases) current() *lease.Keeper {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keeper
}

// Describe implements prometheus.Collector.
func (l *leases) Describe(to chan<- *prometheus.Desc) { lease.Describe(to) }

// Collect implements prometheus.Collector.
func (l *leases) Collect(to chan<- prometheus.Metric) {
	if keeper := l.current(); keeper != nil {
		keeper.Collect(to)
	}
}

// HasParts reports whether limits are shared by the fleet.
func (in *Limiters) HasParts() bool { return in.leases.current() != nil }

// CheckParts is the condition that this instance knows its part of each limit of the fleet.
func (in *Limiters) CheckParts() (string, admin.Health) {
	if keeper := in.leases.current(); keeper != nil && keeper.Waiting() {
		return "no part of a limit yet", admin.Unready
	}
	return "divided", admin.Healthy
}

// budgets are what all instances share.
func (in *Limiters) budgets(c *config.Config) map[string]lease.Budget {
	all := map[string]lease.Budget{}
	for name, part := range in.rates.Fleet() {
		all["rate:"+name] = part
	}
	if c.Limits.Concurrency.Scope == "fleet" {
		all["concurrency"] = in.concurrency
	}
	return all
}

// theSlots is the one key of the concurrency limit.
const theSlots = 1

// slotDemandWeight smooths what changes with each request.
const slotDemandWeight = 0.25

// Demand implements lease.Budget: what is in flight and in the queue.
func (in *concurrency) Demand(time.Duration) []limiter.FleetDemand {
	in.useMu.Lock()
	defer in.useMu.Unlock()
	inFlight := float64(in.all.InFlight())
	if in.demand += slotDemandWeight * (inFlight + float64(in.all.Queued()) - in.demand); in.demand < 1e-3 {
		in.demand = 0
	}
	return []limiter.FleetDemand{{Key: theSlots, PerSecond: in.demand, Share: in.part,
		Held: min(1, inFlight/float64(max(in.limit.MaxInFlight, 1)))}}
}

// SetParts implements lease.Budget. Slots that are taken are given away when they are free.
func (in *concurrency) SetParts(_ [2]uint64, base float64, busy []limiter.FleetPart) {
	for _, part := range busy {
		if part.Key == theSlots {
			base = part.Share
		}
	}
	in.useMu.Lock()
	defer in.useMu.Unlock()
	if in.limit.Scope == "fleet" {
		in.part = base
		in.setSlots()
	}
}
