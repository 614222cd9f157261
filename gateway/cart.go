package gateway

import (
	"time"

	"sluice/proxy"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
)

// An order over several SKUs is one reservation in the ledger of each, all under one serial, taken in the order of the
// SKUs. Four rules hold at every crash point; docs/ledger.md has the table.
//
//  1. The first line is the lock: a serial is reserved once in a ledger and never again, so one attempt in all goes
//     past it. Any other attempt hears of the first line what became of it, and touches no line.
//  2. An order is forwarded after all lines are reserved, and confirmed after it was forwarded. So where a line is
//     found overdue the upstream is asked for the serial, and its one answer is right for each line by itself.
//  3. An attempt releases what it has reserved and nothing else.
//  4. An attempt that finds its own cart in a later line releases nothing: the lock was lost.

// orderLine is the part of an order that is about one SKU.
func orderLine(in ledger.Order, i int) ledger.Order {
	if i > 0 {
		in.SKU, in.Quantity = in.More[i-1].SKU, in.More[i-1].Quantity
	}
	in.More = nil
	return in
}

// aboutLine says which line an answer is about, where it is not the first.
func aboutLine(of, in ledger.Order, t proxy.Reservation) proxy.Reservation {
	if len(in.More) > 0 && string(of.SKU) != string(in.SKU) {
		t.SKU = of.SKU
	}
	return t
}

// linesThatMayRepeat are those by which an earlier order may be found. Without a key the serial is derived from the
// first SKU alone.
func linesThatMayRepeat(in ledger.Order) []ledger.Order {
	all := []ledger.Order{orderLine(in, 0)}
	if len(in.Key) > 0 {
		for i := range in.More {
			all = append(all, orderLine(in, i+1))
		}
	}
	return all
}

// reserveCart takes the units of all lines, or of none. It gives up when half of the time is over for which the first
// line is reserved: its resolver may ask for the order then.
//
// A later line that has this very cart already tells that the ledger of the first one has lost its reservation, and
// with it the lock. The order may have been forwarded then. So what is missing is taken, nothing is forwarded or
// released, and the upstream's answer decides each line.
func (o *orderLedger) reserveCart(d *ledger.Reserver, in ledger.Order) proxy.Reservation {
	began, limit := time.Now(), o.now.Load().Stock.Reserve.ReservationTTL/2
	one := orderLine(in, 0)
	first := o.clocks.reservation(one, d.Reserve(o.clocks.Now(), one))
	if first.Reason != reject.Admitted {
		return first
	}
	in.Key = []byte(first.Serial)
	taken, lost := []string{string(one.SKU)}, false
	for i := range in.More {
		one = orderLine(in, i+1)
		next := o.clocks.reservation(one, d.Reserve(o.clocks.Now(), one))
		switch next.Reason {
		case reject.Admitted:
			if taken = append(taken, string(one.SKU)); time.Since(began) <= limit {
				continue
			}
			next.Reason = reject.Concurrency
		case reject.InProgress, reject.Confirmed:
			lost = true
			continue
		case reject.Released:
			next.Reason = reject.KeyReused // another order of this SKU has this serial
		}
		if !lost {
			for _, sku := range taken {
				d.Settle(sku, first.Serial, ledger.Release)
			}
			next.Serial = ""
			return aboutLine(one, in, next)
		}
		break
	}
	if lost {
		for _, sku := range taken {
			d.Unknown(sku, first.Serial)
		}
		first.Reason = reject.InProgress
	}
	return first
}
