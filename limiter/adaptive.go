package limiter

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Adaptive finds how many requests a shop can have in flight before more of them make it later and not faster, and
// keeps its ConcurrencyLimiter a little below that.
//
// It watches what one step of the limit does to the round trip. By Little's law (1961) a shop answers in-flight / round
// trip requests a second: while a higher limit leaves the round trip as it is, the shop had room; when it only makes
// the round trip longer, the shop has a queue. This is the gradient of the round trip over the limit, and not, as in
// TCP Vegas (Brakmo and Peterson, 1995) or Netflix's concurrency-limits, over the shortest round trip ever seen: a shop
// whose database has become slow, and that has no queue, is to keep all its workers busy, and a shop that has lost half
// of them is not.
//
// Answered is called for each answer, and writes two words, or none while it is off. Tick is called by one goroutine,
// every 20 ms or so. Both are safe beside each other and beside SetBounds.
type Adaptive struct {
	places *ConcurrencyLimiter

	since atomic.Int64 // ns: when the limit became what it is; who entered before says nothing about it. never = it is off
	_     cacheLine
	count atomic.Int64
	sum   atomic.Int64 // ns
	_     cacheLine

	mu             sync.Mutex
	floor, ceiling int // 0 = off
	climb          gradientSearch
	ticks, pressed int // of this step; those at which every place was taken
}

// How long the limit stays as it is before its effect is judged: until these are met.
const (
	shortestStep = 100 * time.Millisecond
	longestStep  = time.Second // with however few answers
	fewAnswers   = 100
	roundTrips   = 5 // each place has had so many answers
)

// never is later than all answers.
const never = math.MaxInt64

// NewAdaptive returns an Adaptive that is off.
func NewAdaptive(places *ConcurrencyLimiter) *Adaptive {
	a := &Adaptive{places: places}
	a.since.Store(never)
	return a
}

// SetBounds has the limit be found between floor and ceiling from now on, from floor upwards: a shop that has just been
// started, or is met by a sale, is not crowded before anything is known of it. A ceiling of 0 switches it off, and
// leaves the limit as it is.
func (a *Adaptive) SetBounds(floor, ceiling int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	since := a.since.Load()
	if a.ceiling == 0 {
		a.climb, since = gradientSearch{limit: float64(floor)}, 0
	}
	if a.floor, a.ceiling = min(max(floor, 1), ceiling), ceiling; ceiling > 0 {
		a.applyLimit(since)
	} else {
		a.since.Store(never)
	}
}

// Answered notes that an answer came at now (monotonic ns) after took. A request that never reached the shop is not to
// be noted; one whose answer never came is, with the time for which it was waited.
func (a *Adaptive) Answered(now int64, took time.Duration) {
	if now-int64(took) < a.since.Load() {
		return
	}
	a.count.Add(1)
	a.sum.Add(int64(took))
}

// Tick changes the limit at now (monotonic ns) when there is reason to.
func (a *Adaptive) Tick(now int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ceiling == 0 {
		return
	}
	if a.since.Load() == 0 { // it was switched on just now: no response has come yet
		a.applyLimit(now)
		return
	}
	a.ticks++
	if a.places.Queued() > 0 || a.places.InFlight() >= a.places.Max() {
		a.pressed++
	}
	age := time.Duration(now - a.since.Load())
	n := a.count.Load()
	if enough := max(fewAnswers, roundTrips*int64(a.places.Max())); age < shortestStep || n < enough && age < longestStep {
		return
	}
	sum := a.sum.Load()
	if 2*a.pressed >= a.ticks {
		a.climb.step(now, n, sum, a.places.Max() < a.ceiling)
	} else {
		a.climb.idle(now, n, sum) // too few shoppers to learn anything from
	}
	a.applyLimit(now)
}

// applyLimit has the ConcurrencyLimiter follow the search, and begins to watch what comes of it.
func (a *Adaptive) applyLimit(now int64) {
	a.climb.limit = min(max(a.climb.limit, float64(a.floor)), float64(a.ceiling))
	a.places.setMaxInFlight(int(a.climb.limit))
	a.since.Store(now)
	a.count.Store(0)
	a.sum.Store(0)
	a.ticks, a.pressed = 0, 0
}
