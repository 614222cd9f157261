package limiter

import (
	"hash/maphash"
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// RateLimiter admits so many requests a second of each key, and a burst of them at once.
//
// It promises that of no key more than rate·t + burst are admitted within any time t, whatever the callers' clocks and
// threads do. It evicts no key: what a key has used is forgotten when it has been earned back, and not before, so that
// a flood of other keys is no amnesty. Its memory is 16 bytes for each of MaxKeys at most, taken page by page. Where
// more keys than that are under way, the error is a rare false rejection: see docs/limits.md for how rare.
//
// Each key is counted by the virtual scheduling of GCRA (ITU-T I.371, 2004, annex A): one number, the instant at which
// its burst is whole again. There are two rows of them, and a key has one cell in each, chosen by a seeded hash. Keys
// that share a cell share what is in it, so a cell never says less than its key has used; the smaller of a key's two
// cells is believed, and none is raised above what that one becomes (Cormode and Muthukrishnan's count-min sketch,
// 2005, with the conservative update of Estan and Varghese, 2002).
//
// It is safe for concurrent use.
type RateLimiter struct {
	spec     RateSpec
	perToken int64       // nanoseconds to earn one token
	depth    int64       // nanoseconds to earn a whole burst
	maxDelay int64       // nanoseconds
	fleet    *FleetShare // nil = this instance has the whole
	near     *nearCounts
	*cells
}

// nearCounts are the admissions that left less than a fifth of a key's burst. A rejection writes none of them.
type nearCounts [nearStripes]struct {
	n atomic.Uint64
	_ cacheLine
}

const nearStripes = 4

func (c *nearCounts) add(at int64) { c[uint64(at)>>6%nearStripes].n.Add(1) }

func (c *nearCounts) sum() (n uint64) {
	for i := range c {
		n += c[i].n.Load()
	}
	return n
}

// RateSpec says what a [RateLimiter] admits. A field beyond its range counts as the nearest value within it.
type RateSpec struct {
	Name      string        // of the rate
	Of        string        // what the key is made of; see RateLimiters
	PerSecond float64       // above 0, at most 1e9; the time for a token is rounded up to whole nanoseconds
	Burst     int           // at least 1; at most what 73 years earn
	MaxDelay  time.Duration // of a request beyond the burst; 0 = it is rejected
	MaxKeys   int           // 1 to 2^31, 16 bytes each, above 256 rounded up to whole pages of 4 KiB
	Fleet     bool          // several instances keep rate and burst together; see FleetShare
}

const (
	maxDepth    = 1 << 61 // ns: added to a clock's it is still a positive number
	maxRateKeys = 1 << 31
)

// NewRateLimiter returns a Rate with every burst whole.
func NewRateLimiter(spec RateSpec) *RateLimiter { return newRate(spec, newCells(spec.MaxKeys)) }

func newRate(spec RateSpec, on *cells) *RateLimiter {
	r := &RateLimiter{spec: spec, perToken: maxDepth, near: &nearCounts{}, cells: on}
	if ns := math.Ceil(float64(time.Second) / spec.PerSecond); ns < maxDepth {
		r.perToken = max(int64(ns), 1)
	}
	burst := min(int64(max(spec.Burst, 1)), maxDepth/r.perToken)
	r.depth = burst * r.perToken
	r.maxDelay = min(max(int64(spec.MaxDelay), 0), maxDepth-r.depth)
	if spec.Fleet {
		r.fleet = newFleetShare(r)
	}
	return r
}

// Acquire takes one token of key at now. If there is none within MaxDelay it reports how long it takes until there is
// one, and has consumed nothing; it has written nothing either, unless it lost a race for the last token. A token that
// is earned within MaxDelay is taken in advance: ok is true, and the caller sleeps for wait. Requests that wait go on
// one after the other, so that the rate holds for them as well.
//
// A caller that was overtaken is judged as of the instant to which the others have taken the key.
func (r *RateLimiter) Acquire(now int64, key []byte) (wait time.Duration, ok bool) {
	perToken, depth := r.perToken, r.depth
	if r.fleet != nil {
		if k := (*r.fleet.keys.Load())[string(key)]; k != nil {
			next, late, ok := k.acquire(r, now)
			return r.judged(next-now, late, ok)
		}
		if perToken, depth = r.part(); perToken == 0 {
			return time.Second, false
		}
	}
	first, second := r.cellsOf(key)
	for {
		low, used := first, first.Load()
		other, more := second, second.Load()
		if more < used {
			low, used, other, more = second, more, first, used
		}
		next := max(used, now) + perToken
		late := next - now - depth
		if late > r.maxDelay {
			return r.judged(next-now, late, false)
		}
		// The order keeps the promise: when low is swapped, it is the smaller of the two and becomes the smaller of
		// the two, so each admission raises what is believed of the key by a whole token, in one step.
		raise(other, more, next)
		if low.CompareAndSwap(used, next) {
			if r.fleet != nil {
				r.fleet.move(key)
			}
			return r.judged(next-now, late, true)
		}
	}
}

// judged is what Acquire reports of a key that owes so much, in ns, and is so late for its burst.
func (r *RateLimiter) judged(debt, late int64, ok bool) (wait time.Duration, _ bool) {
	if !ok {
		return time.Duration(late - r.maxDelay), false
	}
	if debt >= r.depth-r.depth/5 {
		r.near.add(debt)
	}
	return time.Duration(max(late, 0)), true
}

// Peek tells what Acquire would find, and takes nothing: how many tokens are left of key, how long until Acquire takes
// one, 0 = at once, and how long until the burst is whole again.
func (r *RateLimiter) Peek(now int64, key []byte) (left int, wait, whole time.Duration) {
	perToken, depth, shared := r.perToken, r.depth, (*sharedKey)(nil)
	if r.fleet != nil {
		if shared = (*r.fleet.keys.Load())[string(key)]; shared == nil {
			perToken, depth = r.part()
		}
		if perToken == 0 {
			return 0, time.Second, time.Second
		}
	}
	debt := int64(0)
	if shared != nil {
		debt = max(shared.fullAt.Load()-now, 0)
		shared.asked.Store(true)
	} else {
		first, second := r.cellsOf(key)
		debt = max(min(first.Load(), second.Load())-now, 0)
	}
	left = int(max(depth-debt, 0) / perToken)
	wait = time.Duration(max(debt+perToken-depth-r.maxDelay, 0))
	return left, wait, time.Duration(debt)
}

// Reset gives key its whole burst back. A key that shares one of its cells may have its own back as well.
func (r *RateLimiter) Reset(key []byte) {
	if r.fleet != nil {
		r.fleet.forget(key)
	}
	first, second := r.cellsOf(key)
	first.Store(0)
	second.Store(0)
}

// Fleet is what several instances share of this rate; nil = nothing.
func (r *RateLimiter) Fleet() *FleetShare { return r.fleet }

// part is how long this instance takes to earn a token and a burst of a key that is not shared: as much later as there
// are instances, so that what a key has used stays the same part of its burst when they change. perToken 0 = they are
// not known.
func (r *RateLimiter) part() (perToken, depth int64) {
	if r.fleet.instances.Load() == 0 {
		return 0, 0
	}
	perToken = r.fleet.perToken(r)
	return perToken, max(r.depth, perToken)
}

// owe has key owe at least what is earned back at fullAt.
func (r *RateLimiter) owe(key []byte, fullAt int64) {
	first, second := r.cellsOf(key)
	raise(first, first.Load(), fullAt)
	raise(second, second.Load(), fullAt)
}

// cells are the two rows, cut into blocks of a page: the two cells of a key lie in one block, so that a table larger
// than a core's caches costs one walk to a page and not two. A cell holds the instant, in ns of the callers' clock, at
// which a burst is whole again; one that has passed says the same as none.
type cells struct {
	seed   maphash.Seed
	blocks uint64 // each of them width cells of the first row, then width of the second
	width  uint64
	all    []atomic.Int64
}

// blockWidth makes blocks of 4 KiB.
const blockWidth = 256

func newCells(keys int) *cells {
	c := &cells{seed: maphash.MakeSeed()}
	n := uint64(min(max(keys, 1), maxRateKeys))
	c.width = min(n, blockWidth)
	c.blocks = (n + c.width - 1) / c.width
	c.all = make([]atomic.Int64, c.blocks*c.width*2)
	return c
}

// scaledDebt is what a debt is at another rate and burst: as many tokens, or the whole burst and delay of to where
// these have become smaller.
func scaledDebt(debt int64, from, to *RateLimiter) int64 {
	return int64(min(float64(debt)*(float64(to.perToken)/float64(from.perToken)), float64(to.depth+to.maxDelay)))
}

// cellsOf finds the two cells of key. The hash is seeded, so that no client can aim at another's.
func (c *cells) cellsOf(key []byte) (first, second *atomic.Int64) {
	hash := maphash.Bytes(c.seed, key)
	block, rest := bits.Mul64(hash, c.blocks)
	i, _ := bits.Mul64(rest, c.width)
	j, _ := bits.Mul64(mix(hash, 1), c.width)
	at := block * c.width * 2
	return &c.all[at+i], &c.all[at+c.width+j]
}

// bytes is what the cells take.
func (c *cells) bytes() int { return 8 * len(c.all) }

// sampledCells are enough to know the fill within 2 %.
const sampledCells = 4096

// fill estimates which part of the cells holds what has not been earned back at now.
func (c *cells) fill(now int64) float64 {
	under, seen := 0, 0
	for i := 0; i < len(c.all); i += 1 + len(c.all)/sampledCells {
		seen++
		if c.all[i].Load() > now {
			under++
		}
	}
	return float64(under) / float64(seen)
}

// raise makes cell, which was seen to hold old, hold at least least.
func raise(cell *atomic.Int64, old, least int64) {
	for old < least && !cell.CompareAndSwap(old, least) {
		old = cell.Load()
	}
}
