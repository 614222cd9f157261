package ledger

import (
	"time"
)

// cachedStock is one entry of the sold-out cache: what the newest reply said of a SKU, and when it was read. It is
// never changed once it is published.
type cachedStock struct {
	StockVersion

	absent bool  // there is no ledger
	at     int64 // ns of the caller's clock: when the call behind it was made
	wall   int64 // by how many ns the wall clock was ahead of that clock
}

// What ends by itself, soon, is believed for at most so long, in ns: the state Verifying, and units that are undecided.
const (
	verifyingFor = int64(50 * time.Millisecond)
	undecidedFor = int64(time.Second)
)

// unavailable tells why so many units cannot be reserved at now. ok is false when they may be free, or nothing is
// known.
func (s *cachedStock) unavailable(now, units int64) (code Code, ok bool) {
	switch {
	case s == nil:
		return 0, false
	case s.absent:
		return UnknownSKU, true
	case s.stateAt(now) != On:
		return NotOnSale, true
	case s.Free < units:
		return shortage(s.StockVersion, units), true
	}
	return 0, false
}

// shortage tells sold out, which is final, from units that are merely undecided.
func shortage(h StockVersion, units int64) Code {
	if h.Free+h.Held >= units {
		return Undecided
	}
	return SoldOut
}

// unusable reports that the records of the SKU cannot be asked for: there is no ledger, or none that may be believed
// now.
func (s *cachedStock) unusable() bool {
	return s.absent || s.State == Lost || s.State == Verifying
}

// open reports that there is a ledger, and that it has lost nothing.
func (s *cachedStock) open() bool { return !s.unusable() && s.State != Frozen }

// outlives reports whether s is to be kept although next came later: calls overtake each other.
func (s *cachedStock) outlives(next *cachedStock) bool {
	return s != nil && !s.absent && !next.absent && next.State != Lost && next.Older(s.StockVersion)
}

// stateAt is the state at now (ns), by the hours of the SKU. A wall clock that is set meanwhile counts from the next
// reply on.
func (s *cachedStock) stateAt(now int64) State {
	return s.At((now + s.wall) / int64(time.Millisecond))
}

// outcome is the answer from the cache to an order for units that s does not have at now, in ns.
func (s *cachedStock) outcome(now int64, code Code) Outcome {
	out := Outcome{Code: code}
	if code != UnknownSKU {
		out.State = s.stateAt(now)
	}
	if out.State == Waiting {
		out.Opens = s.Opens
	}
	return out
}

// notOnSale is why the SKU was not on sale at now, by a ledger that said so.
func notOnSale(h StockVersion, now int64) Outcome {
	out := Outcome{Code: NotOnSale, State: h.At(now)}
	if out.State == On { // it has opened since
		out.State = Waiting
	}
	if out.State == Waiting {
		out.Opens = h.Opens
	}
	return out
}

// unavailable tells why so many units of q cannot be reserved at now, by the cache or by what the upstream itself says.
func (q *skuQueue) unavailable(now int64, s *cachedStock, units int64) (code Code, ok bool) {
	if code, ok = s.unavailable(now, units); !ok && s != nil && now < q.reportedSoldOut.Load() {
		return SoldOut, true
	}
	return code, ok
}

// refreshDue reports whether an order for so many units is to be sent to the store although s says that it gets
// nothing: s is old, and no other order refreshes it already. Orders refresh one SKU each refreshInterval in
// all; notifications tell of units that come back before that.
func (r *core) refreshDue(now int64, q *skuQueue, s *cachedStock, units int64) bool {
	age, memory := now-s.at, r.live.Load().soldOutMemory
	switch code, sold := s.unavailable(now, units); {
	case !sold || q.refreshing.Load():
		return false
	case s.State == Verifying:
		return age > min(memory, verifyingFor)
	case code == Undecided:
		memory = min(memory, undecidedFor)
	}
	return age > memory && r.refreshes.hasToken(now)
}

// Cached answers from memory alone, at once, and writes nothing: what cannot be reserved at now (ns of Options.Now)
// by the newest reply of the store. It reports false when the order is to be passed on: to LookUp if the Outcome says
// so; else to Reserve, since units may be free or the answer is old.
//
// An order with a key or a user may repeat one that has won. It is looked up while there is capacity, in batches, and
// past that hears Undecided or an Unverified SoldOut, unless this instance has seen it win.
func (r *Reserver) Cached(now int64, o Order) (Outcome, bool) {
	q := r.skus.Find(o.SKU)
	if q == nil {
		return Outcome{}, false
	}
	s := q.stock.Load()
	code, sold := q.unavailable(now, s, o.Quantity)
	switch {
	case !sold, r.refreshDue(now, q, s, o.Quantity):
		return Outcome{}, false
	}
	out := s.outcome(now, code)
	switch {
	case s.unusable(), !mayRepeat(&o, out.State):
		return out, true
	case r.lookups.hasRoom(mostLookups(&o)):
		return Outcome{LookUp: true}, false
	}
	return r.unverified(now, q, &o, out), true
}

// unverified is the answer to an order that was not looked up, where out is what the sold-out cache says.
func (r *Reserver) unverified(now int64, q *skuQueue, o *Order, out Outcome) Outcome {
	if k := r.known(now, q, o); k != nil {
		return k.replay(o)
	}
	out.Unverified = out.Code == SoldOut
	return out
}

// MarkSoldOut notes that the upstream itself says that sku is sold out, although units of the ledger are free: for
// SoldOutMemory its orders hear so, but those that are found to have won before.
func (r *core) MarkSoldOut(now int64, sku []byte) {
	if q := r.skus.Find(sku); q != nil {
		q.reportedSoldOut.Store(now + r.live.Load().soldOutMemory)
	}
}

// Learn takes in a version of the stock that came by another way than a reply, so that units that came back can be
// bought at once.
func (r *Reserver) Learn(sku string, h StockVersion) {
	if q := r.skus.Find([]byte(sku)); q != nil {
		r.learnHint(q, h)
	}
}

// Last is the newest version of the stock of sku that this instance has heard of. It reads nothing.
func (r *Reserver) Last(sku string) (h StockVersion, ok bool) {
	if q := r.skus.Find([]byte(sku)); q != nil {
		if s := q.stock.Load(); s != nil && s.open() {
			return s.StockVersion, true
		}
	}
	return h, false
}

func (r *batcher) learnHint(q *skuQueue, h StockVersion) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := r.o.Now()
	r.learn(now, q, &cachedStock{StockVersion: h, at: now})
	r.dispatch(q)
}

// learn takes in what a reply said, and answers the orders for which no unit is left. mu is held.
func (r *batcher) learn(now int64, q *skuQueue, next *cachedStock) {
	q.learnSale(next.Sale)
	if q.stock.Load().outlives(next) {
		return
	}
	s := *next
	s.wall = r.o.Wall().UnixNano() - r.o.Now()
	if _, sold := s.unavailable(now, 1); sold && next.at < r.gapUntil.Load() {
		r.expire(now, &s)
	}
	q.stock.Store(&s)
	r.mirror.reflect(q, &s)
	waiting := q.orders
	q.orders = nil
	for _, p := range waiting {
		if _, sold := q.unavailable(now, &s, p.Quantity); sold {
			r.place(now, q, p)
		} else {
			q.orders = append(q.orders, p)
		}
	}
}

// onGap has the next order of each sold-out SKU refresh it, since notifications of it may have been lost. What was
// asked before, and is answered later, is old as well. A SKU that is not asked for costs nothing.
func (r *core) onGap() {
	now := r.o.Now()
	r.gapUntil.Store(now)
	for _, q := range r.skus.All() {
		q.mu.Lock()
		if s := q.stock.Load(); s != nil {
			if _, sold := s.unavailable(now, 1); sold {
				old := *s
				r.expire(now, &old)
				q.stock.Store(&old)
			}
		}
		q.mu.Unlock()
	}
}

// expire makes s, which no request reads yet, so old that an order is to refresh it.
func (r *core) expire(now int64, s *cachedStock) { s.at = now - r.live.Load().soldOutMemory - 1 }
