package ledger

import (
	"slices"
	"time"
)

// unresolved is a serial whose outcome must be found out: an order that was forwarded and whose outcome is unknown,
// an overdue reservation, or an orphan. An orphan is a serial of which a call to the store was unsure, and no later
// one found its record: if its unit was reserved, or is yet, no client heard so and it was not forwarded. All times
// are Unix ms.
type unresolved struct {
	asks    bool    // a reservation that may have been forwarded: the upstream is asked
	label   string  // by which that is counted
	orphans []int64 // the deadlines of the unsure calls
	tries   int
	misses  int   // look-ups in the ledger that found no orphan
	due     int64 // not before
	until   int64 // of a reservation: when the next sweep may hand it to another instance
}

const (
	maxUnresolved = 8192 // of one SKU; what does not fit is found by a sweep when its reservation is overdue
	maxOrphans    = 8    // unsure calls of one serial
	orphanLookups = 6    // for an orphan that is not in the ledger: a call may still arrive
	longestPause  = int64(5 * time.Minute / time.Millisecond)
)

// Unknown says that an order was forwarded and no response told whether it exists. Its unit stays held, and the
// upstream is asked about it from now on, before its deadline too.
func (r *Reserver) Unknown(sku, serial string) {
	r.store.NoteUnknown(sku, serial)
	q := r.open([]byte(sku))
	if q == nil {
		return // its reservation is found when it is overdue
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := r.o.Clock().UnixMilli()
	r.markUnresolved(q, serial, now, now+r.live.Load().hold.Milliseconds())
}

// IsUnknown reports whether the outcome of an order is unknown and the upstream is asked about it.
func (r *core) IsUnknown(sku, serial string) bool {
	q := r.skus.Find([]byte(sku))
	if q == nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.unresolved[serial]
	return u != nil && u.asks
}

// markUnresolved makes serial a reservation whose outcome is asked for, until a time or further. mu is held.
func (r *core) markUnresolved(q *skuQueue, serial string, now, until int64) {
	u := r.openUnresolved(q, serial, now)
	if u == nil {
		return
	}
	if !u.asks {
		u.asks, u.label = true, r.label(q.sku)
		r.unknown.WithLabelValues(u.label).Inc()
	}
	u.until = max(u.until, until)
}

// openUnresolved returns the entry of serial, a new one that is due at now if there was none, or nil when there are too
// many. mu is held.
func (r *core) openUnresolved(q *skuQueue, serial string, now int64) *unresolved {
	u := q.unresolved[serial]
	if u == nil && len(q.unresolved) < maxUnresolved {
		u = &unresolved{due: now}
		q.unresolved[serial] = u
	}
	return u
}

// resolved forgets serial: its outcome is known. mu is held.
func (r *core) resolved(q *skuQueue, serial string) {
	if u := q.unresolved[serial]; u != nil && u.asks {
		r.unknown.WithLabelValues(u.label).Dec()
	}
	delete(q.unresolved, serial)
}

// markOrphan notes that a call for serial with a deadline was unsure. mu is held.
func (r *core) markOrphan(q *skuQueue, serial string, deadline int64) {
	now := r.o.Clock().UnixMilli()
	u := r.openUnresolved(q, serial, now)
	if u == nil {
		return
	}
	if len(u.orphans) == maxOrphans {
		u.orphans = slices.Clone(u.orphans[1:])
	}
	u.orphans = append(u.orphans, deadline)
	u.tries, u.misses, u.due = 0, 0, now
}

// indistinct reports whether a call for serial would have the deadline of one that is unsure: then the two reservations
// could not be told from each other. mu is held.
func (r *core) indistinct(q *skuQueue, serial string) bool {
	u := q.unresolved[serial]
	return u != nil && r.nextDeadline() <= u.newestOrphan()
}

// newestOrphan is the deadline of the last unsure call; 0 = there is none.
func (u *unresolved) newestOrphan() int64 {
	if len(u.orphans) == 0 {
		return 0
	}
	return u.orphans[len(u.orphans)-1]
}

// backOff puts the next attempt off, for twice as long each time. mu is held.
func (u *unresolved) backOff(now int64) {
	u.due = now + min(1000<<min(u.tries, 20), longestPause)
	u.tries++
}
