package limits

import (
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	fleet  string // of keeper
	keeper *lease.Keeper
}

// use shares what c says. An error is logged, and then this instance has no part.
func (l *leases) use(c *config.Config, budgets map[string]lease.Budget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keeper != nil && (len(budgets) == 0 || l.fleet != c.Fleet.Name) {
		l.keeper.Close()
		l.keeper = nil
	}
	if len(budgets) == 0 {
		return
	}
	if l.keeper != nil {
		l.keeper.Use(budgets)
		return
	}
	way := stores.RedisOptions(c)
	way.PoolSize = 1
	host, _ := os.Hostname() // a part of a name that is unique anyway
	keeper, err := lease.New(lease.Options{Redis: way, Fleet: c.Fleet.Name, Instance: stores.InstanceName(host),
		Now: l.now, Log: l.log})
	if err != nil {
		l.log.Error("cannot share the limits of the fleet; they admit nothing", "err", err)
		return
	}
	keeper.Use(budgets)
	keeper.Start()
	l.fleet, l.keeper = c.Fleet.Name, keeper
}

// close gives the parts back.
func (l *leases) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keeper != nil {
		l.keeper.Close()
		l.keeper = nil
	}
}

// waiting reports whether limits are shared, and whether this instance has no part of one yet.
func (l *leases) waiting() (shared, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keeper != nil, l.keeper != nil && l.keeper.Waiting()
}

// Describe implements prometheus.Collector.
func (l *leases) Describe(to chan<- *prometheus.Desc) { lease.Describe(to) }

// Collect implements prometheus.Collector.
func (l *leases) Collect(to chan<- prometheus.Metric) {
	l.mu.Lock()
	keeper := l.keeper
	l.mu.Unlock()
	if keeper != nil {
		keeper.Collect(to)
	}
}

// HasParts is the condition that this instance knows its part of each limit of the fleet. shared is false where the
// limits are those of the instance.
func (in *Limiters) HasParts() (detail string, ok, shared bool) {
	shared, waits := in.leases.waiting()
	if waits {
		return "no part of a limit yet", false, shared
	}
	return "divided", true, shared
}

// budgets are what all instances share.
func (in *Limiters) budgets(c *config.Config) map[string]lease.Budget {
	all := map[string]lease.Budget{}
	for name, part := range in.rates.Fleet() {
		all["rate:"+name] = part
	}
	if c.Limits.Concurrency.Scope == "fleet" {
		all["concurrency"] = &in.concurrency.part
	}
	return all
}

// slotPart is the part of the concurrency limit that this instance has. Its demand is what is in flight and in the
// queue. Slots that are taken are given away when they are free.
type slotPart struct {
	of *concurrency

	mu     sync.Mutex
	part   float64 // of max_in_flight; 1 = all
	most   int     // max_in_flight
	shared bool    // among instances
	demand float64
}

// theSlots is the one key of the concurrency limit.
const theSlots = 1

// slotDemandWeight smooths what changes with each request.
const slotDemandWeight = 0.25

// Demand implements lease.Budget.
func (p *slotPart) Demand(time.Duration) []limiter.FleetDemand {
	p.mu.Lock()
	defer p.mu.Unlock()
	inFlight := float64(p.of.all.InFlight())
	if p.demand += slotDemandWeight * (inFlight + float64(p.of.all.Queued()) - p.demand); p.demand < 1e-3 {
		p.demand = 0
	}
	return []limiter.FleetDemand{{Key: theSlots, PerSecond: p.demand, Share: p.part,
		Held: min(1, inFlight/float64(max(p.most, 1)))}}
}

// SetParts implements lease.Budget.
func (p *slotPart) SetParts(_ [2]uint64, base float64, busy []limiter.FleetPart) {
	for _, part := range busy {
		if part.Key == theSlots {
			base = part.Share
		}
	}
	p.mu.Lock()
	p.part = base
	p.mu.Unlock()
	p.of.setPart(p.slots())
}

// use takes max_in_flight, and whether it is shared; it returns the slots of this instance.
func (p *slotPart) use(most int, shared bool) int {
	p.mu.Lock()
	switch {
	case !shared:
		p.part = 1
	case !p.shared:
		p.part = 0 // until it is told
	}
	p.most, p.shared = most, shared
	p.mu.Unlock()
	return p.slots()
}

// slots are at least one: 0 would be no limit.
func (p *slotPart) slots() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(1, int(p.part*float64(p.most)+1e-6))
}
