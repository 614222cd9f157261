package ledger

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// reconciler has ledgers that may have lost something told what this instance knows of their orders: those that it
// took, and what became of them. A frozen SKU opens again by itself when every instance has told that called before:
// then nothing can be missing, since an order is forwarded by an instance alone. An order whose outcome is unknown is
// reserved again, and the upstream is asked. Where an instance is gone, or its log does not reach back, the SKU stays
// frozen until an operator has adopted what only the upstream knows; the log says so.
type reconciler struct {
	*core
	unknown func(sku, serial string)         // takes an order that was put back, whose outcome is not known
	learn   func(sku string, h StockVersion) // takes the version after a recovery
	frozen  map[string]reopening             // by SKU
	stuck   atomic.Pointer[string]
	opened  prometheus.Counter
	putBack prometheus.Counter
}

// reopening is a frozen SKU as the log knows it.
type reopening struct {
	since time.Time
	said  bool
}

const (
	longWait      = time.Minute      // after this the log names the instances that are waited for; the same as in mark.lua
	recoverWithin = 10 * time.Second // bounds one run for a SKU: a log may be some hundred calls
)

func newReconciler(r *core, unknown func(sku, serial string), learn func(sku string, h StockVersion)) *reconciler {
	return &reconciler{core: r, unknown: unknown, learn: learn, frozen: make(map[string]reopening),
		opened: prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_ledger_reopened_total",
			Help: "Frozen SKUs that this instance opened again, as the last one to tell what it knew."}),
		putBack: prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_ledger_put_back_total",
			Help: "Records that this instance put back into ledgers that had lost them."}),
	}
}

// Run tells what is to be told now. frozen are the SKUs that are known to be frozen: one of which no instance knows
// anything that it could tell, since all have been started again, is in the log, too. It is not safe for concurrent
// use.
func (c *reconciler) Run(ctx context.Context, frozen []string) {
	pending := c.store.Pending()
	for _, sku := range pending {
		if ctx.Err() != nil {
			return
		}
		c.reconcile(ctx, sku)
	}
	now := time.Now()
	for _, sku := range frozen {
		if !slices.Contains(pending, sku) {
			c.look(ctx, now, sku)
		}
	}
	var stuck *string
	for sku, of := range c.frozen {
		switch {
		case !slices.Contains(pending, sku) && !slices.Contains(frozen, sku):
			if of.said { // opened by another instance, or by an operator
				c.o.Log.Info("SKU is on sale again, or closed by its operator: it was recovered", "sku", sku)
			}
			delete(c.frozen, sku)
		case of.said && (stuck == nil || sku < *stuck):
			stuck = &sku
		}
	}
	c.stuck.Store(stuck)
}

// look reports a SKU that has been frozen for long, and to which this instance has nothing to tell.
func (c *reconciler) look(ctx context.Context, now time.Time, sku string) {
	of, known := c.frozen[sku]
	if !known {
		c.frozen[sku] = reopening{since: now}
	}
	if !known || of.said || now.Sub(of.since) <= longWait || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	if s, err := c.store.Look(ctx, sku, now.UnixMilli()); err == nil {
		c.report(now, sku, &s)
	}
}

// Stuck is a SKU that stays frozen, as the log says; "" = none. It is safe for concurrent use.
func (c *reconciler) Stuck() string {
	if sku := c.stuck.Load(); sku != nil {
		return *sku
	}
	return ""
}

func (c *reconciler) reconcile(ctx context.Context, sku string) {
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	now := time.Now()
	s, err := c.store.Recover(ctx, sku, now.UnixMilli(), now.Add(c.o.Keep).UnixMilli())
	for _, serial := range s.Unknown {
		c.unknown(sku, serial)
	}
	if err != nil {
		return // again in a second
	}
	c.report(now, sku, &s)
	c.learn(sku, s.StockVersion)
}

// Collect writes the counters of what was recovered by this instance.
func (c *reconciler) Collect(ch chan<- prometheus.Metric) {
	ch <- c.opened
	ch <- c.putBack
}

// report says what the log must have: that the SKU is open again and how it balances, or why it stays closed.
func (c *reconciler) report(now time.Time, sku string, s *Result) {
	c.putBack.Add(float64(s.Fresh))
	if s.Opened {
		c.opened.Inc()
	}
	of, known := c.frozen[sku]
	if !known {
		of.since = now
	}
	attrs := []any{"sku", sku, "put_back", s.Restored, "total", s.Total, "held", s.Held, "sold", s.Sold, "free", s.Free}
	late := now.Sub(of.since) > longWait
	switch {
	case s.Free < 0 && s.Over && s.State != Frozen: // before, others may know that orders were given back
		c.o.Log.Error("the ledger has more sold than there is: compare it with the shop (sluice-settle verify): refund what "+
			"the shop has not, and for the rest raise the total, or cancel orders there", attrs...)
	case s.Opened:
		c.o.Log.Info("ledger is recovered: the SKU goes on", append(attrs, "state", string(s.State))...)
	case s.Over && s.State != Frozen && s.Restored > 0:
		c.o.Log.Info("ledger has what this instance knows", attrs...)
	}
	if s.State == Frozen && !of.said && (late || s.ByHand()) {
		of.said = true
		c.o.Log.Error("SKU stays frozen: make sure that this is the right Redis, and that the instances in waits_for are "+
			"back or stopped, since one may still sell on a master that was left; then give it the orders that the "+
			"upstream has: sluice stock recover "+sku+" --from FILE --apply",
			append(attrs, "why", s.Why, "waits_for", s.Waits, "journal_too_short", s.Partial,
				"older_than_seen", s.Was == Frozen)...)
	}
	c.frozen[sku] = of
	if s.Over {
		delete(c.frozen, sku)
	}
}
