package queue

import (
	"math"
	"sync"
	"time"
)

// pace is how many orders this instance may have in the upstream, and how long all wait before the next one. It halves
// when the upstream rejects two orders in a row for now, and grows by one a second. It is safe for concurrent use.
type pace struct {
	mu     sync.Mutex
	most   float64
	limit  float64
	grown  time.Time
	halved time.Time
	failed int           // requests in a row for which there was no connection
	pause  time.Duration // of all instances; not told yet
	busyOf string        // the order that was rejected for now last, while no other was answered since
}

const (
	halveEvery = time.Second
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
	mostPause  = time.Minute // that an upstream may ask for
)

func newPace(most int, now time.Time) *pace {
	return &pace{most: float64(most), limit: float64(most), grown: now}
}

// now is the limit at a time.
func (p *pace) now(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = min(p.limit+max(now.Sub(p.grown).Seconds(), 0), p.most)
	p.grown = now
	return int(p.limit)
}

// use changes the highest limit. A higher one is reached by and by, since the upstream may be busy.
func (p *pace) use(most int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit >= p.most {
		p.limit = float64(most) // it was not slowed down
	}
	p.most, p.grown = float64(most), now
	p.limit = min(p.limit, p.most)
}

// busy notes that the upstream rejects an order for now, and perhaps for how long. The first one may be rejected for
// its client's sake: the others slow down when a second one is rejected, too.
func (p *pace) busy(now time.Time, serial string, retryAfter time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.busyOf == "" || p.busyOf == serial
	p.busyOf = serial
	if first {
		return
	}
	p.halve(now)
	p.pause = max(p.pause, min(retryAfter, mostPause))
}

// taken notes that the upstream has answered an order, and not that it is busy.
func (p *pace) taken() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busyOf = ""
}

// unreachable notes that no connection was to be had.
func (p *pace) unreachable(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halve(now)
	p.pause = max(p.pause, min(firstPause<<min(p.failed, 10), lastPause))
	p.failed++
}

// answered notes that the upstream answers.
func (p *pace) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = 0
}

// halve halves the limit: once for all orders that were under way together. mu is held.
func (p *pace) halve(now time.Time) {
	if now.Sub(p.halved) < halveEvery {
		return
	}
	p.halved, p.grown = now, now
	p.limit = math.Max(math.Floor(p.limit/2), 1)
}

// takePause is how long all shall wait from now on.
func (p *pace) takePause() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := p.pause
	p.pause = 0
	return pause
}
