package gateway

import (
	"errors"
	"time"

	"sluice/proxy"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
)

// askAgain is when an order that was not looked up does well to come again.
const askAgain = time.Second

// Decided implements proxy.Orders. The first line comes first: it alone may repeat an order without a key. Where
// another one is sold out such an order was not looked up: its client may have won before.
func (o *orderLedger) Decided(now int64, in ledger.Order) (proxy.Reservation, bool) {
	d := o.Reserver()
	if d == nil {
		return proxy.Reservation{Reason: reject.StockError}, true
	}
	lookUp := false
	for i := range len(in.More) + 1 {
		one, mayRepeat := orderLine(in, i), i == 0 || len(in.Key) > 0
		if !mayRepeat {
			one.User = nil
		}
		out, decided := d.Cached(now, one)
		if !decided {
			lookUp = lookUp || out.LookUp
			continue
		}
		t := o.clocks.reservation(one, out)
		if !mayRepeat {
			t.Wait = max(t.Wait, askAgain)
		}
		return aboutLine(one, in, t), true
	}
	return proxy.Reservation{LookUp: lookUp}, false
}

// LookUp implements proxy.Orders.
func (o *orderLedger) LookUp(now int64, in ledger.Order) (proxy.Reservation, bool) {
	d := o.Reserver()
	if d == nil {
		return proxy.Reservation{Reason: reject.StockError}, true
	}
	for _, line := range linesThatMayRepeat(in) {
		if out, found := d.LookUp(now, line); found {
			return aboutLine(line, in, o.clocks.reservation(line, out)), true
		}
	}
	return proxy.Reservation{}, false
}

// Reserve implements proxy.Orders.
func (o *orderLedger) Reserve(now int64, in ledger.Order) proxy.Reservation {
	d := o.Reserver()
	if d == nil {
		return proxy.Reservation{Reason: reject.StockError}
	}
	if quotas := o.now.Load().quotas; quotas != nil && len(in.User) > 0 {
		if bounds := quotas.of(in, o.clocks.Wall()); len(bounds) > 0 {
			return o.reserveWithin(d, quotas, bounds, in)
		}
	}
	return o.take(d, now, in)
}

// take takes the units of an order, of all its lines or of none.
func (o *orderLedger) take(d *ledger.Reserver, now int64, in ledger.Order) proxy.Reservation {
	if len(in.More) > 0 {
		return o.reserveCart(d, in)
	}
	out := d.Reserve(now, in)
	if out.State == ledger.Lost {
		o.NoteUnknown() // so that readyz says so soon
	}
	return o.clocks.reservation(in, out)
}

// reservation says in the gate's words what the ledger said of an order.
func (by orderClocks) reservation(in ledger.Order, out ledger.Outcome) proxy.Reservation {
	t := proxy.Reservation{Serial: out.Serial, Deadline: out.Deadline,
		ByKey: len(in.Key) > 0 && string(in.Key) == out.Serial && !ledger.LooksDerived(out.Serial)}
	switch out.Code {
	case ledger.Held:
		t.Reason = reject.Admitted
	case ledger.ReplayHeld:
		t.Reason = reject.InProgress
	case ledger.ReplaySold:
		t.Reason = reject.Duplicate
		if len(in.Key) > 0 {
			t.Reason = reject.Confirmed
		}
	case ledger.SoldOut:
		t.Reason = reject.SoldOut
		if out.Unverified {
			t.Wait = askAgain
		}
	case ledger.Undecided:
		t.Reason = reject.Undecided
	case ledger.NotOnSale:
		t.Reason = offSale(out.State)
		if out.State == ledger.Waiting {
			t.Wait = time.UnixMilli(out.Opens).Sub(by.Wall())
		}
	case ledger.UserLimit:
		t.Reason, t.Serial = reject.Duplicate, "" // it left no trace that could be asked for
	case ledger.OtherOrder:
		t.Reason, t.Serial = reject.KeyReused, ""
	case ledger.Released, ledger.Refunded:
		t.Reason, t.Refunded = reject.Released, out.Code == ledger.Refunded
	case ledger.UnknownSKU:
		t.Reason = reject.UnknownSKU
	case ledger.Overloaded:
		t.Reason = reject.Concurrency
	case ledger.Invalid:
		t.Reason = reject.BadRequest
	default: // Unsure
		t.Reason = reject.StockError
	}
	return t
}

func offSale(s ledger.State) reject.Reason {
	switch s {
	case ledger.Waiting:
		return reject.NotStarted
	case ledger.Ended, ledger.Over:
		return reject.Ended
	case ledger.Frozen, ledger.Verifying, ledger.Lost:
		return reject.StockError
	}
	return reject.Paused
}

// Settle implements proxy.Orders.
func (o *orderLedger) Settle(in ledger.Order, serial string, f metrics.OrderOutcome) {
	d := o.Reserver() // there is one: it took the order
	for i := range len(in.More) + 1 {
		sku := string(orderLine(in, i).SKU)
		if f == metrics.OrderUnknown {
			d.Unknown(sku, serial)
			continue
		}
		op := ledger.Release
		if f == metrics.OrderConfirmed {
			op = ledger.Confirm
		}
		d.Settle(sku, serial, op)
	}
}

// State implements proxy.Orders.
func (o *orderLedger) State(now int64, sku, serial []byte) (proxy.OrderState, reject.Reason) {
	d := o.Reserver()
	if d == nil {
		return proxy.OrderState{}, reject.StockError
	}
	r, of, ok, err := d.State(string(sku), string(serial))
	switch {
	case errors.Is(err, ledger.ErrTooMany):
		return proxy.OrderState{}, reject.Rate
	case err != nil:
		return proxy.OrderState{}, reject.StockError
	case !ok:
		return proxy.OrderState{}, reject.Admitted
	}
	return proxy.OrderState{SKU: of, State: r.Status, Deadline: r.Deadline}, reject.Admitted
}
