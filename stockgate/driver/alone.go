package driver

import (
	"context"
	"sync/atomic"

	"sluice/stockgate/link"
)

// alone is a decision whose keys of a SKU may lie in several slots: it works as long as Redis is no cluster. What Redis is
// shows when it is first reached; until then, and on a cluster for good, nothing is sent.
type alone struct {
	decision
	way
	apart error // what a cluster hears
	fits  atomic.Bool
}

func (a *alone) take(ctx context.Context, orders []*order) {
	if err := a.fit(ctx); err != nil {
		for _, o := range orders {
			o.why, o.err = notSent, err
		}
		return
	}
	a.decision.take(ctx, orders)
}

func (a *alone) giveBack(ctx context.Context, orders []*order) {
	if err := a.fit(ctx); err != nil {
		for _, o := range orders {
			o.given, o.err = notSent, err
		}
		return
	}
	a.decision.giveBack(ctx, orders)
}

// fit is the error of a cluster, or of a Redis that does not say what it is.
func (a *alone) fit(ctx context.Context) error {
	if a.fits.Load() {
		return nil
	}
	switch topology, err := a.way.Topology(ctx); {
	case err != nil:
		return err
	case topology == link.Cluster:
		return a.apart
	}
	a.fits.Store(true)
	return nil
}

// Fit finds out what Redis is where that matters, and refuses a cluster that keeps keys of a SKU apart (ErrApart). Orders
// that come all the same hear stock_error.
func (d *Desk) Fit(ctx context.Context) error {
	if a, ok := d.decision.(*alone); ok {
		return a.fit(ctx)
	}
	return nil
}
