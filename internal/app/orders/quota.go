package orders

import (
	"context"
	"hash/maphash"
	"slices"
	"time"

	"sluice/config"
	"sluice/proxy"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/protocol"
)

// A sale with max_per_user bounds the units of one user in all its ledgers together. No record is kept of that: each
// ledger counts the units of its users, by whichever way these are reserved, confirmed, released or refunded. So
// nothing can disagree with the ledgers, and nothing is left behind where a gate dies; docs/sales.md has the table.
//
//  1. An order reserves its units before it is counted, and is forwarded after it was counted. Of several orders of one
//     user the last one that reserved finds the units of all others that may be forwarded, on whichever servers they
//     are. If they are too many together, it gives its own units back.
//  2. An order is also counted before it reserves, so that a user who has enough takes no unit and uses up no key.
//  3. Orders of one user at one instance are counted one after the other. At two instances each may find the other's
//     units and give its own back: both are asked to come again.
//  4. A ledger that may have lost its last changes counts as unknown, and nothing of its sale is sold meanwhile.

// quotas are the sales that bound what one user may have.
type quotas struct {
	sales   []config.Sale
	ledgers protocol.Counter
	timeout time.Duration
	turns   [1024]chan struct{} // of users: one order of each is counted at a time
	seed    maphash.Seed
}

// quota is a sale that bounds an order.
type quota struct {
	skus  []string
	limit int64
	units int64 // that the order asks for
}

// newQuotas returns nil where no sale bounds anything.
func newQuotas(c *config.Config, ledgers protocol.Counter) *quotas {
	r := &c.Stock.Redis
	q := &quotas{ledgers: ledgers, timeout: r.ConnectTimeout + r.Timeout, seed: maphash.MakeSeed()}
	for _, s := range c.Sales {
		if s.MaxPerUser > 0 {
			q.sales = append(q.sales, s)
		}
	}
	if len(q.sales) == 0 {
		return nil
	}
	for i := range q.turns {
		q.turns[i] = make(chan struct{}, 1)
	}
	return q
}

// of are the quotas of an order: of each SKU that of the sale that is on, or is the next.
func (q *quotas) of(in proxy.Order, now time.Time) (all []quota) {
	for i := range q.sales {
		s, units := &q.sales[i], int64(0)
		for k := range len(in.More) + 1 {
			if one := line(in, k); q.saleOf(string(one.SKU), now) == s {
				units += one.Quantity
			}
		}
		if units > 0 {
			all = append(all, quota{skus: s.SKUs, limit: int64(s.MaxPerUser), units: units})
		}
	}
	return all
}

func (q *quotas) saleOf(sku string, now time.Time) (next *config.Sale) {
	for i := range q.sales {
		s := &q.sales[i]
		if now.Before(s.Ends) && slices.Contains(s.SKUs, sku) && (next == nil || s.Starts.Before(next.Starts)) {
			next = s
		}
	}
	return next
}

// wait waits for the user's turn, for at most a second.
func (q *quotas) wait(user []byte) (end func(), ok bool) {
	turn := q.turns[maphash.Bytes(q.seed, user)%uint64(len(q.turns))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, true
	default:
	}
	patience := time.NewTimer(askAgain)
	defer patience.Stop()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, true
	case <-patience.C:
		return nil, false
	}
}

// reserveWithin reserves an order of which some sales bound what its user may have.
func (o *Ledger) reserveWithin(d *ledger.Reserver, q *quotas, bounds []quota, in proxy.Order) proxy.Reservation {
	began, limit := time.Now(), o.config.Stock.Reserve.ReservationTTL/2
	end, ok := q.wait(in.User)
	if !ok {
		return proxy.Reservation{Reason: reject.Concurrency}
	}
	defer end()
	switch reason := q.count(bounds, in.User, true); {
	case reason == reject.Duplicate && hasOrder(d, in): // the ledger answers by its record, and reserves nothing
	case reason != reject.Admitted:
		return proxy.Reservation{Reason: reason}
	}
	t := o.take(d, o.clocks.Now(), in)
	if t.Reason != reject.Admitted {
		return t
	}
	reason := q.count(bounds, in.User, false)
	if reason == reject.Duplicate || reason == reject.Admitted && time.Since(began) > limit {
		reason = reject.Concurrency // another order of this user was reserved meanwhile
	}
	if reason == reject.Admitted {
		return t
	}
	for k := range len(in.More) + 1 {
		d.Settle(string(line(in, k).SKU), protocol.Item{Serial: t.Serial}, protocol.Release)
	}
	return proxy.Reservation{Reason: reason, Wait: askAgain}
}

// hasOrder reports whether the ledger has an order of this key.
func hasOrder(d *ledger.Reserver, in proxy.Order) bool {
	if len(in.Key) == 0 {
		return false
	}
	_, _, known, err := d.State(string(in.SKU), string(in.Key))
	return known && err == nil
}

// count is Duplicate where user has more than bounds allow, with what the order asks for if that comes on top, and
// StockError where a ledger does not tell.
func (q *quotas) count(bounds []quota, user []byte, onTop bool) reject.Reason {
	for _, b := range bounds {
		ctx, cancel := context.WithTimeout(context.Background(), q.timeout)
		owned := q.ledgers.UnitsOf(ctx, b.skus, string(user))
		cancel()
		has := int64(0)
		if onTop {
			has = b.units
		}
		for _, one := range owned {
			switch one.State {
			case protocol.Frozen, protocol.Doubted, protocol.Lost:
				return reject.StockError
			}
			if one.Err != nil {
				return reject.StockError
			}
			has += one.Units
		}
		if has > b.limit {
			return reject.Duplicate
		}
	}
	return reject.Admitted
}
