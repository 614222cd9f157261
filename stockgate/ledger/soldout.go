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

// outlives reports whether s is to be kept although next came later: calls overtake each other. A ledger of an earlier
// epoch that is frozen is there now: on another server, which lacks the later one.
func (s *cachedStock) outlives(next *cachedStock) bool {
	lacks := next.State == Lost || s != nil && next.State == Frozen && next.Epoch < s.Epoch
	return s != nil && !s.absent && !next.absent && !lacks && next.Older(s.StockVersion)
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

// MarkSoldOut notes that the upstream itself says that sku is sold out, although units of the ledger are free: for
// SoldOutMemory its orders hear so, but those that are found to have won before.
func (r *core) MarkSoldOut(now int64, sku []byte) {
	if q := r.skus.Find(sku); q != nil {
		q.reportedSoldOut.Store(now + r.live.Load().soldOutMemory)
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
