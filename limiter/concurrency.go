package limiter

import (
	"sync"
	"sync/atomic"
	"time"
)

// ConcurrencyLimiter are the places inside the shop: at most so many requests in flight, and a bounded queue before
// them. A place that becomes free goes straight to the one in the queue that has waited longest.
// A newcomer never overtakes the queue, unless it goes first: see Acquire.
//
// It promises that a place is never held by more than one, and never lost, however a hand-over, a time-out and a
// departure meet. Entering and leaving without a queue is one atomic write; a rejection for a full queue writes
// nothing.
//
// It is safe for concurrent use.
type ConcurrencyLimiter struct {
	maxInFlight atomic.Int64
	maxQueue    atomic.Int64
	_           cacheLine

	// state is what is in flight (lower half) and what waits (upper half). What waits changes only under mu; while
	// anything waits, so does what is in flight. That is what keeps the fast paths off a queue that is not empty.
	state atomic.Uint64
	_     cacheLine

	mu     sync.Mutex
	queues priorityQueues
	waits  waits
}

// NewConcurrencyLimiter returns one for maxInFlight requests (0 = no cap) and a queue of maxQueue (0 = none).
func NewConcurrencyLimiter(maxInFlight, maxQueue int) *ConcurrencyLimiter {
	p := &ConcurrencyLimiter{}
	p.SetMax(maxInFlight, maxQueue)
	return p
}

// SetMax changes both maxima from now on. New room goes to those who wait; what is above a lower max stays until it
// leaves, and who waits in a queue that has become too long stays in it.
func (p *ConcurrencyLimiter) SetMax(maxInFlight, maxQueue int) {
	p.SetQueue(maxQueue)
	p.setMaxInFlight(maxInFlight)
}

// SetQueue changes how many may wait, alone.
func (p *ConcurrencyLimiter) SetQueue(maxQueue int) {
	p.maxQueue.Store(int64(min(max(maxQueue, 0), 1<<30)))
}

func (p *ConcurrencyLimiter) setMaxInFlight(maxInFlight int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.maxInFlight.Store(int64(max(maxInFlight, 0)))
	for {
		s := p.state.Load()
		if waiting(s) == 0 || !p.room(s) {
			return
		}
		p.state.Store(s - oneWaiting + oneInFlight)
		p.popWaiter().handOver()
	}
}

// Client is who waits for a slot.
type Client interface {
	// Gone reports that the client has closed its connection. It is asked at the client's turn, and must not block.
	Gone() bool
}

// Peek tells whether Acquire would reject at once, since the queue is full. It writes nothing.
func (p *ConcurrencyLimiter) Peek(first bool) (full bool) {
	s, most := p.state.Load(), p.maxQueue.Load()
	return (waiting(s) != 0 || !p.room(s)) && waiting(s) >= most && p.queues.displaces(first, most) == nil
}

// TryAcquire takes a place if one is free and no one waits for it.
func (p *ConcurrencyLimiter) TryAcquire() bool {
	for {
		s := p.state.Load()
		if waiting(s) != 0 || !p.room(s) {
			return false
		}
		if p.state.CompareAndSwap(s, s+oneInFlight) {
			return true
		}
	}
}

// Acquire takes a place for client (nil = one who never goes). If there is none it waits in the queue, for timeout at
// most. It returns Admitted, QueueFull, TimedOut, or Gone: the turn came, but the client had left, and the place has
// gone on to the next. Each Admitted must be ended by one Release.
//
// Requests with first go before the others, which keep a tenth of the places that become free, and of a full queue. A
// newcomer may displace one of the other kind that waits there; that is QueueFull, too.
func (p *ConcurrencyLimiter) Acquire(first bool, timeout time.Duration, client Client) Verdict {
	switch {
	case p.TryAcquire():
		return Admitted
	case p.Peek(first):
		return QueueFull
	}
	return p.enterSlow(first, timeout, client)
}

// Release gives a place back, or on to the one whose turn it is.
func (p *ConcurrencyLimiter) Release() {
	for {
		s := p.state.Load()
		if waiting(s) != 0 {
			p.leaveSlow()
			return
		}
		if inFlight(s) == 0 {
			panic("BUG: Release without Acquire")
		}
		if p.state.CompareAndSwap(s, s-oneInFlight) {
			return
		}
	}
}

// InFlight is the number of places taken.
func (p *ConcurrencyLimiter) InFlight() int { return int(inFlight(p.state.Load())) }

// Max is the number of places that there are now; 0 = no cap.
func (p *ConcurrencyLimiter) Max() int { return int(p.maxInFlight.Load()) }

// Queued is the number of those who wait for a place.
func (p *ConcurrencyLimiter) Queued() int { return int(waiting(p.state.Load())) }

const (
	oneInFlight = 1
	oneWaiting  = 1 << 32
)

func inFlight(state uint64) int64 { return int64(state & (oneWaiting - 1)) }
func waiting(state uint64) int64  { return int64(state >> 32) }

func (p *ConcurrencyLimiter) room(state uint64) bool {
	most := p.maxInFlight.Load()
	return most == 0 || inFlight(state) < most
}
