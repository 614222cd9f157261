package script

import (
	"context"
	"errors"

	"sluice/stockgate/script/records"
)

// giveBackDue gives back what is due.
func (k *keeper) giveBackDue(ctx context.Context) {
	for n := maxBatch; n == maxBatch && ctx.Err() == nil && k.repeat(ctx); {
		due, err := k.store.Claim(ctx, maxBatch)
		if err != nil {
			return // others say what Redis is; what was handed out is due again
		}
		n = len(due)
		k.giveBack(ctx, due)
	}
}

// giveBack runs the script for orders that were handed out. One whose giving back has begun before is lost: a second
// run could give back a unit that is sold, of a later order of this user for instance. One whose units were taken from
// other keys stays owed: the script would add units to a stock that they are not of.
func (k *keeper) giveBack(ctx context.Context, due []records.Owed) {
	var orders []*order
	var of []records.Owed
	for _, d := range due {
		o, by, err := orderOf(d)
		switch {
		case err != nil:
			o = &order{sku: d.SKU, serial: d.Serial, err: err}
			k.lose(ctx, d, o)
		case d.Begun:
			o.err = errLostGiveBack
			k.lose(ctx, d, o)
		case !k.r.script.fits(o.sku) || by != k.r.script.fingerprint(o):
			k.tellChanged(o)
			k.end(ctx, d, k.store.Again)
		default:
			orders, of = append(orders, o), append(of, d)
		}
	}
	if len(orders) == 0 {
		return
	}
	k.r.script.giveBack(ctx, k.r.way, orders)
	for i, o := range orders {
		switch {
		case o.outcome == taken:
			k.r.counts.countUnits(o, unitsGivenBack)
			k.r.soldOut.Open(k.r.o.Now(), o.sku)
			k.end(ctx, of[i], k.store.Done)
		case o.outcome == soldOut:
			k.r.counts.countUnits(o, unitsNotGivenBack)
			k.end(ctx, of[i], k.store.Done)
		case o.outcome == notSent, o.outcome == busy, k.r.script.preset && o.outcome == failed:
			k.end(ctx, of[i], k.store.Again)
		default:
			k.lose(ctx, of[i], o)
		}
	}
}

// tellChanged says once that units were taken by other keys, arguments or another script than those of today.
func (k *keeper) tellChanged(o *order) {
	if k.told {
		return
	}
	k.told = true
	k.r.o.Log.Error("units of orders are not given back, and not for sale: other keys or another script took them",
		"next", "restore keys, args, preset and release of stock.script, or give them back by hand: "+
			"sluice reservation list --state owed", "script", k.r.script.name, "sku", o.sku, "serial", o.serial,
		"units", o.quantity)
}

// errLostGiveBack is the cause when an instance has died while it gave units back.
var errLostGiveBack = errors.New("an instance ended while it gave them back")

// lose ends an order whose units may have been given back or not.
func (k *keeper) lose(ctx context.Context, d records.Owed, o *order) {
	k.r.countLost(o)
	k.end(ctx, d, k.store.Done)
}

// unsaid is what came of an order that could not be written.
type unsaid struct {
	records.Owed
	say func(context.Context, records.Owed) error
	err error
}

// maxUnsaid bounds them.
const maxUnsaid = 10_000

// end writes what came of an order, now or when Redis is there again. Where this instance ends before, the order is
// handed out again as one that was begun.
func (k *keeper) end(ctx context.Context, d records.Owed, say func(context.Context, records.Owed) error) {
	err := say(context.WithoutCancel(ctx), d)
	switch u := (unsaid{d, say, err}); {
	case err == nil:
	case len(k.unsaid) < maxUnsaid:
		k.unsaid = append(k.unsaid, u)
	default:
		k.warnUnsaid(u)
	}
}

// repeat writes what could not be written, and reports whether nothing is left.
func (k *keeper) repeat(ctx context.Context) bool {
	for len(k.unsaid) > 0 {
		u := &k.unsaid[0]
		if u.err = u.say(ctx, u.Owed); u.err != nil {
			return false
		}
		k.unsaid = k.unsaid[1:]
	}
	return true
}

func (k *keeper) warnUnsaid(u unsaid) {
	k.r.o.Log.Warn("an order will be counted as lost: what came of giving its units back could not be written",
		"sku", u.SKU, "serial", u.Serial, "err", u.err)
}
