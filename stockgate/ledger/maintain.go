package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"sluice/internal/periodic"
)

const (
	maintainInterval = time.Second
	// At most; a third of FRESH in mark.lua: an instance that is silent for longer is not waited for after a fail-over.
	sweepInterval   = 20 * time.Second
	sweepsPerSecond = 100 // of up to so many SKUs each is swept every second
	maxSwept        = 256 // reservations of one SKU in a call
	// Longer than a run of the resolver may take. So long the orders wait that an instance was to ask about when it died.
	leaseFor = 20 * time.Second
)

// maintenance sweeps all ledgers for overdue reservations, removes queues that are of no use, and looks after backlogs
// and mirrors. It is one goroutine, which also runs the resolver and the auditor.
type maintenance struct {
	*core
	batches    *batcher
	resolver   *resolver
	reconciler *reconciler
	audits     *auditor
}

// maintain looks after all ledgers until ctx ends: it sweeps overdue reservations, tells recovering ledgers what this
// instance knows, resolves unknown outcomes, and judges the numbers of ledgers.
func (r *maintenance) maintain(ctx context.Context) {
	periodic.After(ctx, maintainInterval, func(ctx context.Context) {
		swept := r.sweepDue(ctx)
		r.reconciler.Run(ctx, r.frozen())
		r.resolver.resolveDue(ctx)
		r.audits.check(ctx, swept)
	})
}

// sweepDue sweeps the SKUs whose time has come, and removes queues that are of no use. Each ledger is swept at least
// every sweepInterval, more often where there are few. A sweep is also what keeps this instance's mark fresh in a
// ledger that it has no orders for. It returns which were swept.
func (r *maintenance) sweepDue(ctx context.Context) (swept []string) {
	now, ledgers := int64(time.Since(r.start)), 0
	var due []*skuQueue
	for _, q := range r.skus.All() {
		if !q.hasLedger() {
			r.removeUseless(q)
			continue
		}
		if ledgers++; q.nextSweep <= now {
			due = append(due, q)
		}
	}
	interval := min(sweepInterval, time.Duration(ledgers/sweepsPerSecond)*time.Second) - maintainInterval/2
	slices.SortFunc(due, func(a, b *skuQueue) int { return cmp.Compare(a.nextSweep, b.nextSweep) })
	due = due[:min(len(due), max(sweepsPerSecond, ledgers/int(sweepInterval/time.Second)+1))]
	for some := range slices.Chunk(due, MaxTogether) {
		if ctx.Err() != nil {
			return swept
		}
		skus := make([]string, len(some))
		for i, q := range some {
			q.nextSweep = now + int64(interval)
			skus[i] = q.sku
		}
		r.sweep(ctx, some, skus)
		r.checkBacklog(ctx, some, skus)
		for _, q := range some {
			r.checkMirror(ctx, q)
		}
		swept = append(swept, skus...)
	}
	return swept
}

// frozen are the SKUs that are known to be frozen.
func (r *maintenance) frozen() (skus []string) {
	for _, q := range r.skus.All() {
		if s := q.stock.Load(); s != nil && s.State == Frozen {
			skus = append(skus, q.sku)
		}
	}
	return skus
}

// removeUseless removes the queue of a SKU without a ledger that was not asked for lately, unless it is in use.
func (r *maintenance) removeUseless(q *skuQueue) {
	s := q.stock.Load()
	if s == nil && q.preloaded.Load() || s != nil && r.o.Now()-s.at <= 10*r.live.Load().soldOutMemory {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.calls > 0 || q.settling || q.mirror.busy || len(q.bySerial)+len(q.unresolved)+len(q.pending) > 0 {
		return
	}
	q.removed = true
	if q.backlogged {
		r.backlogged.Dec()
	}
	r.skus.Remove(q.sku, q)
	r.audits.forget(q.sku)
}

// sweep leases overdue reservations of some SKUs: only one instance asks for each. What fails is swept again when the
// SKU is due again.
func (r *maintenance) sweep(ctx context.Context, some []*skuQueue, skus []string) {
	now := r.o.Clock().UnixMilli()
	lease := now + leaseFor.Milliseconds()
	bounded, cancel := context.WithTimeout(ctx, r.o.Timeout)
	r.countCall(callSweep, len(some))
	swept := r.store.SweepAll(bounded, skus, now, lease)
	cancel()
	for i, q := range some {
		r.markOverdue(q, swept[i].Holds, now, lease)
		if swept[i].Epoch > q.newest().Epoch { // it was frozen or opened without an order of this instance
			r.batches.ReadFirst(ctx, q.sku)
		}
		if swept[i].More {
			r.sweepWhole(ctx, q)
		}
	}
}

// sweepWhole sweeps a SKU of which more is due than it takes to share a round trip.
func (r *maintenance) sweepWhole(ctx context.Context, q *skuQueue) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	now := r.o.Clock().UnixMilli()
	lease := now + leaseFor.Milliseconds()
	r.countCall(callSweep, 1)
	overdue, _ := r.store.Sweep(ctx, q.sku, now, lease, maxSwept) // after an error there are none
	r.markOverdue(q, overdue, now, lease)
}

// markOverdue has the resolver find out what became of overdue reservations.
func (r *maintenance) markOverdue(q *skuQueue, overdue []Record, now, lease int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, rec := range overdue {
		r.markUnresolved(q, rec.Serial, now, lease)
	}
}

// checkBacklog raises the alarm when the consumers of a SKU's changes are too far behind, and ends it when they are not
// any more. An error of the store says neither.
func (r *maintenance) checkBacklog(ctx context.Context, some []*skuQueue, skus []string) {
	ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	errs := r.store.Backlog(ctx, skus)
	if errs == nil {
		errs = make([]error, len(skus))
	}
	for i, q := range some {
		switch err := errs[i]; {
		case errors.Is(err, ErrBacklog) && !q.backlogged:
			q.backlogged = true
			r.backlogged.Inc()
			r.o.Log.Error("the ledger's changes are not acknowledged, and fill Redis' memory", "sku", q.sku, "err", err)
		case err == nil && q.backlogged:
			q.backlogged = false
			r.backlogged.Dec()
			r.o.Log.Info("the ledger's changes are acknowledged again", "sku", q.sku)
		}
	}
}
