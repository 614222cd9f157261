package stockgate

import "sync/atomic"

// restockQuota bound what is let at units that came back, so that one of them does not draw the whole crowd into the
// shop. Each reading grants this instance's share of what it found free, less the requests that may have taken some of
// it: those that are under way, and those that ended while the reading was made. So the requests at the shop are never
// more than the units that come back, and one share of each instance in vain; and a try that came to nothing is given
// to another request with the next reading, so that no unit is left over.
type restockQuota struct {
	left  atomic.Int64 // 0 = no bound, 1 = none, n = n-1
	ended atomic.Int64 // requests that the shop has answered, ever

	endedBefore int64 // the last reading began; the sampler's own
}

const (
	unbounded = 0
	noTry     = 1
)

// spent reports that no try is left.
func (t *restockQuota) spent() bool { return t.left.Load() == noTry }

// acquire takes one try, where they are bounded.
func (t *restockQuota) acquire() bool {
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

// freed reports whether a request has ended since the last reading began: it may have left its unit to others.
func (t *restockQuota) freed() bool { return t.ended.Load() != t.endedBefore }

// setRestockQuota bounds the tries by what a reading found of a SKU that was sold out before. Who takes the last of the
// old ones meanwhile is under way before it is looked who is.
func (e *entry) setRestockQuota(share int64) {
	e.left.Store(noTry)
	taken := e.inFlight.Load()
	taken += e.ended.Load() - e.endedBefore
	if share > taken {
		e.left.Store(share - taken + noTry)
	}
}

// share is this instance's part of the tries for free units: perUnit of each, divided by the instances and rounded up.
func share(free, perUnit int64, instances int) int64 {
	all, n := times(max(1, perUnit), max(0, free)), int64(max(1, instances))
	return all/n + min(1, all%n)
}
