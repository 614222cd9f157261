package queue

import (
	"math"
	"math/bits"
	"sync"
	"time"
)

// pace is how many orders this instance may have in the upstream, and how long all wait before the next one. It halves
// when the upstream is busy, and grows by one a second. A 503 says that it is. A 429 is about one client: the upstream
// is busy when most answers are 429. It is safe for concurrent use.
type pace struct {
	mu     sync.Mutex
	most   float64
	limit  float64
	grown  time.Time
	halved time.Time
	failed int           // requests in a row for which there was no connection
	pause  time.Duration // of all instances; not told yet
	recent uint32        // a bit for each of the last answers: 1 = it was 429
	rushes int           // how often most answers were 429, while no order was taken since
}

const (
	halveEvery = time.Second
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
	mostPause  = time.Minute // that an upstream may ask for
	mostRecent = 24          // of the last 32 answers: so many 429 mean that the upstream is busy
	rushPause  = time.Second // when it is busy by that; it doubles, up to what the upstream asks for
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

// unavailable notes a 503, and for how long the upstream wants no request.
func (p *pace) unavailable(now time.Time, retryAfter time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halve(now)
	p.pause = max(p.pause, min(retryAfter, mostPause))
}

// tooMany notes a 429, and for how long the upstream wants no request of this client. Clients with a limit of their own
// must not stop the orders of all others: the pause is short while orders between are taken.
func (p *pace) tooMany(now time.Time, retryAfter time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recent = p.recent<<1 | 1
	if bits.OnesCount32(p.recent) < mostRecent {
		return
	}
	p.recent = 0
	p.halve(now)
	p.pause = max(p.pause, min(retryAfter, rushPause<<min(p.rushes, 10), mostPause))
	p.rushes++
}

// taken notes that the upstream has answered an order, and not that it is busy.
func (p *pace) taken() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recent, p.rushes = p.recent<<1, 0
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
