package ledger

import "sync/atomic"

// pace lets depth things happen at once, and one more in every interval. It is one number: the instant at which
// all of depth may happen at once again. It is safe for concurrent use.
type pace struct {
	every, depth int64 // ns, things
	fullAt       atomic.Int64
}

// open reports whether one thing may happen at now, and writes nothing.
func (p *pace) open(now int64) bool { return p.fullAt.Load()-now <= (p.depth-1)*p.every }

// take lets one thing happen at now, if it may.
func (p *pace) take(now int64) bool {
	for {
		at := p.fullAt.Load()
		if at-now > (p.depth-1)*p.every {
			return false
		}
		if p.fullAt.CompareAndSwap(at, max(at, now)+p.every) {
			return true
		}
	}
}
