package demo

import (
	"sync"
	"time"
)

// throttle is what makes a shop slow: it begins one order after another at a fixed pace, and each takes its time.
// Who comes faster stands in line, first come, first served; the line has no end, as in a shop without a
// gate. It is safe for concurrent use.
type throttle struct {
	each    time.Duration // between the beginnings of two orders
	service time.Duration // from the beginning of one order to its end

	mu   sync.Mutex
	next time.Time // when the next order can begin
}

// join puts an order that came at now at the end of the line and tells how long it takes until it is done.
func (t *throttle) join(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	begins := t.next
	if begins.Before(now) {
		begins = now
	}
	t.next = begins.Add(t.each)
	return begins.Add(t.service).Sub(now)
}
