package upstream

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// maxTargets fits the targets that were tried into one word.
const maxTargets = 64

// targets is one set of targets and the way to choose among them. It is never changed, only replaced.
type targets struct {
	all  []*target
	next *atomic.Uint64 // counts the choices; survives a replacement
	pick func(ts *targets, ok uint64, key uint64) int
}

// policyNamed returns the function of a policy's name.
func policyNamed(name string) (func(ts *targets, ok uint64, key uint64) int, error) {
	switch name {
	case "least_conn":
		return (*targets).leastConn, nil
	case "round_robin":
		return (*targets).roundRobin, nil
	case "random":
		return (*targets).random, nil
	case "first":
		return (*targets).first, nil
	case "client_hash":
		return (*targets).clientHash, nil
	}
	return nil, fmt.Errorf("read policy %q: not least_conn, round_robin, random, first or client_hash", name)
}

// choose picks a target that was not tried yet; -1 if there is none. Usable ones come first. When none is usable, one
// of the others is picked: then a request is the best probe.
func (ts *targets) choose(tried, key uint64, now time.Duration) int {
	var ok, rest uint64
	for i, t := range ts.all {
		switch {
		case tried&(1<<i) != 0:
		case t.usable(now):
			ok |= 1 << i
		default:
			rest |= 1 << i
		}
	}
	if ok == 0 {
		ok = rest
	}
	if ok == 0 {
		return -1
	}
	if ok&(ok-1) == 0 {
		return bits.TrailingZeros64(ok) // the only one
	}
	return ts.pick(ts, ok, key)
}

// first picks the first in the configuration's order.
func (ts *targets) first(ok, _ uint64) int { return bits.TrailingZeros64(ok) }

// firstFrom is the first of ok at or after from, around the end.
func (ts *targets) firstFrom(ok uint64, from uint64) int {
	n := uint64(len(ts.all))
	for i := range n {
		if at := (from + i) % n; ok&(1<<at) != 0 {
			return int(at)
		}
	}
	return -1
}

func (ts *targets) roundRobin(ok, _ uint64) int {
	return ts.firstFrom(ok, ts.next.Add(1))
}

// load is how many requests the target has, those that wait included.
func (t *target) load() int64 { return t.counters.inFlight.Load() + t.queue.length.Load() }

// leastConn picks the fewest requests; among equals, round robin.
func (ts *targets) leastConn(ok, _ uint64) int {
	best := -1
	var fewest int64
	from := ts.next.Add(1)
	n := uint64(len(ts.all))
	for i := range n {
		at := (from + i) % n
		if ok&(1<<at) == 0 {
			continue
		}
		if load := ts.all[at].load(); best < 0 || load < fewest {
			best, fewest = int(at), load
		}
	}
	return best
}

// random picks the less loaded of two drawn at random (Mitzenmacher, "The Power of Two Choices").
func (ts *targets) random(ok, _ uint64) int {
	n := uint64(len(ts.all))
	a := ts.firstFrom(ok, rand.Uint64N(n))
	b := ts.firstFrom(ok&^(1<<a), rand.Uint64N(n))
	if b >= 0 && ts.all[b].load() < ts.all[a].load() {
		return b
	}
	return a
}

// clientHash sends a client to the same target as long as that is usable, and moves no other client when a target is
// removed (rendezvous hashing, Thaler and Ravishankar).
func (ts *targets) clientHash(ok, key uint64) int {
	best := -1
	var most uint64
	for i, t := range ts.all {
		if ok&(1<<i) == 0 {
			continue
		}
		if w := mix(key ^ t.hash); best < 0 || w > most {
			best, most = i, w
		}
	}
	return best
}

// mix is the finalizer of MurmurHash3: every bit of x reaches every bit of the result.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
