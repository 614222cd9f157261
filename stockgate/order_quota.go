package stockgate

import (
	"math"
	"sync/atomic"
)

// orderQuota bounds how many orders one reading admits, so that a burst does not reach the upstream on the word of a
// reading that the burst itself has made old. Each reading grants this instance's share of what it found free, less the
// orders that may have taken some of it: those in flight, and those that ended while the reading was made. So the
// orders at the upstream are never more than max_in_flight_per_unit for each free unit, and one of each instance. A
// try that took no unit is granted to another order by the next reading, so that no unit is left over.
type orderQuota struct {
	left  atomic.Int64 // 0 = no bound, 1 = none, n = n-1
	ended atomic.Int64 // orders that the upstream has answered, ever

	endedBefore int64 // the last reading began; the poller's own
}

const (
	unbounded = 0
	noTry     = 1
)

// bounded reports whether there is a quota.
func (t *orderQuota) bounded() bool { return t.left.Load() != unbounded }

// spent reports that no try is left.
func (t *orderQuota) spent() bool { return t.left.Load() == noTry }

// acquire takes one try, where they are bounded.
func (t *orderQuota) acquire() bool {
	for {
		switch n := t.left.Load(); {
		case n == unbounded:
			return true
		case n == noTry:
			return false
		case t.left.CompareAndSwap(n, n-1):
			return true
		}
	}
}

// putBack returns one try, where they are bounded.
func (t *orderQuota) putBack() {
	for n := t.left.Load(); n != unbounded && !t.left.CompareAndSwap(n, n+1); n = t.left.Load() {
	}
}

// freed reports whether an order has ended since the last reading began: it may have left its unit to others.
func (t *orderQuota) freed() bool { return t.ended.Load() != t.endedBefore }

// setOrderQuota grants the tries of a reading. An order that takes one of the old tries meanwhile makes it count again,
// so no order is rejected while a reading changes the quota. An order is in flight before it takes its try: the count
// includes it. Only the first quota of a SKU has no tries for an instant: an order without a bound leaves no trace.
func (e *entry) setOrderQuota(share int64) {
	e.left.CompareAndSwap(unbounded, noTry)
	for {
		before := e.left.Load()
		taken := e.inFlight.Load()
		taken += e.ended.Load() - e.endedBefore
		if e.left.CompareAndSwap(before, max(0, share-taken)+noTry) {
			return
		}
	}
}

// share is this instance's part of the tries for free units: perUnit of each, divided by the instances and rounded up.
func share(free, perUnit int64, instances int) int64 {
	all, n := times(max(1, perUnit), max(0, free)), int64(max(1, instances))
	return min(all/n+min(1, all%n), maxQuota)
}

// maxQuota keeps sums with a quota within 64 bits.
const maxQuota = math.MaxInt64 / 2
