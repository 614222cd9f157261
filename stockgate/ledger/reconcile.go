package ledger

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// forgetful is a store whose ledgers may lose their last changes, and whose instances can tell them.
type forgetful interface {
	untold() []string
	wonders(sku, serial string)
	recover(ctx context.Context, sku string, now, keep int64) (story, error)
}

// reopening is a frozen SKU as the log knows it. Only the watch has it.
type reopening struct {
	since time.Time
	said  bool
}

// longWait is how long instances are waited for before the log says so, the same as in mark.lua.
const longWait = time.Minute

// reconcileSome tells the ledgers that may have lost something what this instance knows of their orders: those that it
// took, and what became of them. A frozen SKU opens again by itself when every instance has told that called before:
// then nothing can be missing, since an order is forwarded by an instance alone. An order whose outcome is unknown is
// held again, and the oracle is asked. Where an instance is gone, or its journal does not reach back, the SKU stays
// frozen until somebody has adopted what only the shop knows; the log says so.
func (d *Desk) reconcileSome(ctx context.Context) {
	store, ok := d.store.(forgetful)
	if !ok {
		return
	}
	for _, sku := range store.untold() {
		if ctx.Err() != nil {
			return
		}
		d.reconcile(ctx, store, sku)
	}
}

func (d *Desk) reconcile(ctx context.Context, store forgetful, sku string) {
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	now := time.Now()
	s, err := store.recover(ctx, sku, now.UnixMilli(), now.Add(d.o.Keep).UnixMilli())
	for _, serial := range s.unknown {
		d.Unknown(sku, serial)
	}
	if err != nil {
		return // again in a second
	}
	d.report(now, sku, &s)
	d.Note(sku, s.Hint)
}

// recoverWithin bounds one turn: a journal may be some hundred calls.
const recoverWithin = 10 * time.Second

// reopenings count what was reconciled by this instance.
type reopenings struct{ opened, putBack atomic.Uint64 }

func (c *reopenings) count(s *story) {
	c.putBack.Add(uint64(s.fresh))
	if s.opened {
		c.opened.Add(1)
	}
}

func (c *reopenings) collect(ch chan<- prometheus.Metric) {
	counter := func(name, help string, n *atomic.Uint64) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue, float64(n.Load()))
	}
	counter("sluice_ledger_reopened_total", "Frozen SKUs that this instance opened again, as the last one to tell what it knew.", &c.opened)
	counter("sluice_ledger_put_back_total", "Records that this instance put back into ledgers that had lost them.", &c.putBack)
}

// report says what the log must have: that the SKU is open again and how it balances, or why it stays closed.
func (d *Desk) report(now time.Time, sku string, s *story) {
	d.reopenings.count(s)
	of, known := d.closing[sku]
	if !known {
		of.since = now
	}
	attrs := []any{"sku", sku, "put_back", s.restored, "total", s.Total, "held", s.Held, "sold", s.Sold, "free", s.Free}
	late := now.Sub(of.since) > longWait
	switch {
	case s.Free < 0:
		d.o.Log.Error("more is sold than there is: cancel orders at the shop, or raise the total", attrs...)
	case s.opened:
		d.o.Log.Info("ledger is reconciled: the SKU goes on", append(attrs, "state", string(s.State))...)
	case s.over && s.State != Frozen && s.restored > 0:
		d.o.Log.Info("ledger has what this instance knows", attrs...)
	}
	if s.State == Frozen && !of.said && (late || s.byHand()) {
		of.said = true
		d.o.Log.Error("SKU stays frozen: make sure that this is the right Redis, and that the instances in waits_for are back or stopped, since one may still sell on a master that was left; "+
			"then adopt the orders that the shop has (sluice stock adopt FILE), and open it (sluice stock thaw)",
			append(attrs, "why", s.Why, "waits_for", s.waits, "journal_too_short", s.partial, "older_than_seen", s.was == Frozen)...)
	}
	d.closing[sku] = of
	if s.over {
		delete(d.closing, sku)
	}
}
