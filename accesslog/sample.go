package accesslog

import (
	"sync/atomic"

	"sluice/proxy"
)

const reasons = len(proxy.Totals{}.Refused)

// sample chooses the refusals that are written down. In a flood it writes nothing anywhere: what it reads then lies in
// every core's cache.
type sample struct {
	first, every atomic.Uint64
	_            [48]byte
	seconds      [reasons]second
}

// second counts the first refusals of one reason in one second.
type second struct {
	state atomic.Uint64 // the second << 32 | how many were chosen in it
	_     [56]byte
}

func (s *sample) set(first, every int) {
	s.first.Store(uint64(first))
	s.every.Store(uint64(max(every, 1)))
}

// Wants implements proxy.Journal: the first of a reason in a second, then one in so many.
func (l *Log) Wants(now int64, reason proxy.Reason, nth uint64) bool {
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
