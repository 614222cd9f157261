package gateway

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"time"

	"sluice/config"
	"sluice/internal/batch"
	"sluice/proxy"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
)

// A sale with max_per_user bounds the units of one user in all its ledgers together. No record is kept of that: each
// ledger counts the units of its users, by whichever way these are reserved, confirmed, released or refunded. So
// nothing can disagree with the ledgers, and nothing is left behind where a gate dies; docs/ledger.md has the table.
//
//  1. An order reserves its units before it is counted, by a call that begins after that, and is forwarded after it was
//     counted. Of several orders of one user the last one that reserved finds the units of all others that may be
//     forwarded, on whichever servers they are. If they are too many together, it gives its own units back.
//  2. An order is also counted before it reserves, so that a user who has enough takes no unit and uses up no key.
//  3. Orders of one user at one instance are counted one after the other. At two instances each may find the other's
//     units and give its own back: both are asked to come again.
//  4. A ledger that may have lost its last changes counts as unknown, and nothing of its sale is sold meanwhile.

// quotas are the sales, of which some bound what one user may have.
type quotas struct {
	sales   []*quota // all of them: one without a bound may come before one with a bound
	ledgers *ledger.Store
	timeout time.Duration
	turns   [1024]chan struct{} // of users: one order of each is counted at a time
	seed    maphash.Seed
}

// quota is a sale that bounds what one user may have. One call counts for many users: those who come while another
// call is under way.
type quota struct {
	sale    config.Sale
	counted batch.Calls[string, userUnits] // of users
}

// userUnits are the units of a user.
type userUnits struct {
	units  int64
	reason reject.Reason // StockError: a ledger does not tell
}

// saleBound is a sale that bounds an order, and the units that the order asks for.
type saleBound struct {
	*quota
	units int64
}

// newQuotas returns nil where no sale bounds anything.
func newQuotas(c *config.Config, ledgers *ledger.Store) *quotas {
	r := &c.Stock.Redis
	q := &quotas{ledgers: ledgers, timeout: r.ConnectTimeout() + r.Timeout, seed: maphash.MakeSeed()}
	bounds := false
	for _, s := range c.Sales {
		one := &quota{sale: s}
		one.counted.Most, one.counted.Call = ledger.MaxItems, func(_ string, users []string) ([]userUnits, error) {
			return q.unitsOf(one, users), nil
		}
		q.sales, bounds = append(q.sales, one), bounds || s.MaxPerUser > 0
	}
	if !bounds {
		return nil
	}
	for i := range q.turns {
		q.turns[i] = make(chan struct{}, 1)
	}
	return q
}

// of are the quotas of an order: of each SKU that of the sale that is on, or is the next.
func (q *quotas) of(in ledger.Order, now time.Time) (all []saleBound) {
	for k := range len(in.More) + 1 {
		one := orderLine(in, k)
		s := q.saleOf(string(one.SKU), now)
		if s == nil || s.sale.MaxPerUser == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(b saleBound) bool { return b.quota == s })
		if i < 0 {
			i, all = len(all), append(all, saleBound{s, 0})
		}
		all[i].units += one.Quantity
	}
	return all
}

func (q *quotas) saleOf(sku string, now time.Time) (next *quota) {
	for _, s := range q.sales {
		if now.Before(s.sale.Ends) && slices.Contains(s.sale.SKUs, sku) &&
			(next == nil || s.sale.Starts.Before(next.sale.Starts)) {
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
func (o *orderLedger) reserveWithin(d *ledger.Reserver, q *quotas, bounds []saleBound, in ledger.Order,
) proxy.Reservation {
	began, limit := time.Now(), o.now.Load().Stock.Reserve.ReservationTTL/2
	end, ok := q.wait(in.User)
	if !ok {
		return proxy.Reservation{Reason: reject.Concurrency}
	}
	defer end()
	reason := q.count(bounds, in.User, true)
	if reason == reject.Duplicate {
		reason = earlierOrder(d, in)
	}
	if reason != reject.Admitted {
		return proxy.Reservation{Reason: reason}
	}
	t := o.take(d, o.clocks.Now(), in)
	if t.Reason != reject.Admitted {
		return t
	}
	reason = q.count(bounds, in.User, false)
	if reason == reject.Duplicate || reason == reject.Admitted && time.Since(began) > limit {
		reason = reject.Concurrency // another order of this user was reserved meanwhile
	}
	if reason == reject.Admitted {
		return t
	}
	for k := range len(in.More) + 1 {
		d.Settle(string(orderLine(in, k).SKU), t.Serial, ledger.Release)
	}
	return proxy.Reservation{Reason: reason, Wait: askAgain}
}

// earlierOrder is what an order hears whose user has enough: Duplicate, but Admitted where the ledger has an order of
// its key, and answers by its record. Where that cannot be looked up, it is not known.
func earlierOrder(d *ledger.Reserver, in ledger.Order) reject.Reason {
	if len(in.Key) == 0 {
		return reject.Duplicate
	}
	switch _, _, known, err := d.State(string(in.SKU), string(in.Key)); {
	case errors.Is(err, ledger.ErrTooMany):
		return reject.Concurrency
	case err != nil:
		return reject.StockError
	case known:
		return reject.Admitted
	}
	return reject.Duplicate
}

// count is Duplicate where user has more than bounds allow, with what the order asks for if that comes on top, and
// StockError where a ledger does not tell.
func (q *quotas) count(bounds []saleBound, user []byte, onTop bool) reject.Reason {
	for _, b := range bounds {
		c, err := b.counted.Do(context.Background(), "", string(user))
		if err != nil || c.reason != reject.Admitted {
			return reject.StockError
		}
		if onTop {
			c.units += b.units
		}
		if c.units > int64(b.sale.MaxPerUser) {
			return reject.Duplicate
		}
	}
	return reject.Admitted
}

// endCounts waits for the last calls that count: each ends in time by itself.
func (o *orderLedger) endCounts() {
	if q := o.now.Load().quotas; q != nil {
		for _, s := range q.sales {
			s.counted.Wait()
		}
	}
}

// unitsOf counts for some users.
func (q *quotas) unitsOf(s *quota, users []string) []userUnits {
	ctx, cancel := context.WithTimeout(context.Background(), q.timeout)
	defer cancel()
	all := make([]userUnits, len(users))
	for _, owned := range q.ledgers.UnitsOf(ctx, s.sale.SKUs, users) {
		known := owned.Err == nil
		switch owned.State {
		case ledger.Frozen, ledger.Verifying, ledger.Lost:
			known = false
		}
		for i := range all {
			if !known {
				all[i].reason = reject.StockError
			} else if owned.Units != nil {
				all[i].units += owned.Units[i]
			}
		}
	}
	return all
}
