package queue

import (
	"cmp"
	"slices"
	"time"

	"sluice/stockgate/ledger"
)

// Status is the queue as this instance sees it.
type Status struct {
	ledger.Depth
	PerSecond float64           // attempts of all instances, smoothed
	Limit     int               // orders that this instance lets the upstream have at once now
	Attempts  map[string]uint64 // of this instance, by outcome
	Expired   uint64            // orders that this instance released
	SKUs      []SKUStatus       // those with orders; most that wait first
}

// SKUStatus is the queue of one SKU.
type SKUStatus struct {
	SKU string
	ledger.Depth
	PerSecond float64       // attempts of all instances, smoothed; 0 = not known
	ETA       time.Duration // of an order that comes now; 0 = not known
}

// Status tells what waits and what was done.
func (d *Deliverer) Status(now time.Time) Status {
	s := Status{Depth: d.lines.total(), Limit: d.pace.now(now), Expired: d.expire.Load(),
		Attempts: make(map[string]uint64, numAttemptKinds), SKUs: d.lines.status()}
	for kind := range numAttemptKinds {
		s.Attempts[kind.String()] = d.counts[kind].Load()
	}
	for _, one := range s.SKUs {
		s.PerSecond += one.PerSecond
		if s.Oldest == 0 || one.Oldest > 0 && one.Oldest < s.Oldest {
			s.Oldest = one.Oldest
		}
	}
	return s
}

func (s *lines) status() (all []SKUStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		all = append(all, SKUStatus{SKU: l.sku, Depth: l.depth, PerSecond: l.pace, ETA: l.eta(l.depth.Waiting)})
	}
	slices.SortStableFunc(all, func(a, b SKUStatus) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.SKU, b.SKU))
	})
	return all
}
