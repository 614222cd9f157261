package ledger

import "sync/atomic"

// tokenBucket admits depth events at once, and one more in every interval. It is one number: the instant at which the
// bucket is full again. It is safe for concurrent use.
type tokenBucket struct {
	interval, depth int64 // ns, events
	fullAt          atomic.Int64
}

// hasToken reports whether one event may happen at now, and writes nothing.
func (b *tokenBucket) hasToken(now int64) bool { return b.fullAt.Load()-now <= (b.depth-1)*b.interval }

// take takes one token at now, if there is one.
func (b *tokenBucket) take(now int64) bool {
	for {
		at := b.fullAt.Load()
		if at-now > (b.depth-1)*b.interval {
			return false
		}
		if b.fullAt.CompareAndSwap(at, max(at, now)+b.interval) {
			return true
		}
	}
}
