package accesslog

import (
	"sync/atomic"

	"sluice/proxy/reject"
)

// sample chooses the rejections that are logged. Under a flood it writes no shared memory, and what it reads is in the
// cache of every processor.
type sample struct {
	first, every atomic.Uint64
	_            [48]byte
	seconds      [reject.NumReasons]second
}

// second counts the first rejections for one reason in one second.
type second struct {
	state atomic.Uint64 // the second << 32 | how many were chosen in it
	_     [56]byte
}

func (s *sample) set(first, every int) {
	s.first.Store(uint64(first))
	s.every.Store(uint64(max(every, 1)))
}

// Sampled implements metrics.AccessLogger: the first rejections for a reason in each second, then one in so many.
func (l *Log) Sampled(now int64, reason reject.Reason, nth uint64) bool {
	return l.sample.first.Load() > 0 && l.sample.among(&l.sample.seconds[reason], now) || nth%l.sample.every.Load() == 0
}

// among reports whether this is one of the first.
func (s *sample) among(cell *second, now int64) bool {
	at, first := uint64(now)/1e9, s.first.Load()
	for {
		old := cell.state.Load()
		next := old + 1
		if at > old>>32 { // a request that began in the second before counts for this one
			next = at<<32 | 1
		} else if old&(1<<32-1) >= first {
			return false
		}
		if cell.state.CompareAndSwap(old, next) {
			return true
		}
	}
}
