package limiter

import (
	"sync"
	"sync/atomic"
)

// FleetShare lets several instances keep one keyed rate together. Of each key an instance has its part, rate and burst
// divided by the number of instances, and one token at least. What it admits is told to a count of the fleet. From the
// answer on the key is shared: it is judged by all of rate and burst, less what the fleet has used. What others admit
// is known with the next answer; it counts then, so that what was too much is earned back first.
//
// What the fleet has used is a time, as in a cell: how long it takes until the burst is whole again.
//
// At most maxShared keys are shared at a time, and so many others are told of. Further ones keep their part, as all
// keys do while no answer comes. It makes no call itself. It is safe for concurrent use.
type FleetShare struct {
	rate      atomic.Pointer[RateLimiter] // in force, of this share
	instances atomic.Int64                // 0 = not known: nothing is admitted
	keys      atomic.Pointer[map[string]*sharedKey]

	mu    sync.Mutex
	moved map[string]*int64 // tokens of keys that were not shared, which the fleet has not been told of
}

// maxShared is how many keys of a rate are shared, and how many others are told of at once.
const maxShared = 512

// sharedKey is what an instance knows of a shared key.
type sharedKey struct {
	fullAt atomic.Int64 // as a cell: when the burst of the fleet is whole again
	taken  atomic.Int64 // tokens that the fleet has not been told of
	asked  atomic.Bool  // since the last telling
	reset  atomic.Bool  // the fleet is to forget what it has used
}

// FleetUse is what one key of a rate has used here since the last telling.
type FleetUse struct {
	Key      string
	Tokens   int64
	PerToken int64 // ns
	Most     int64 // ns; a debt beyond that is of a clock that was wrong
	Reset    bool  // forget what was used before
	moved    int64 // of Tokens: taken while the key was not shared
}

func newFleetShare(r *RateLimiter) *FleetShare {
	f := &FleetShare{moved: map[string]*int64{}}
	f.rate.Store(r)
	f.keys.Store(&map[string]*sharedKey{})
	return f
}

// SetInstances says how many instances share the rate; 0 = that is not known, and nothing is admitted.
func (f *FleetShare) SetInstances(n int) { f.instances.Store(int64(min(max(n, 0), maxInstances))) }

// Shared is how many keys are shared.
func (f *FleetShare) Shared() int { return len(*f.keys.Load()) }

// Uses is what the fleet is to be told: of the shared keys that were asked for, and of others that were admitted. Each
// call must be ended by one Learn or Lose, before the next call.
func (f *FleetShare) Uses() (uses []FleetUse) {
	r := f.rate.Load()
	use := FleetUse{PerToken: r.perToken, Most: f.most(r)}
	f.mu.Lock()
	moved := f.moved
	f.moved = map[string]*int64{}
	f.mu.Unlock()
	for key, k := range *f.keys.Load() {
		more := moved[key] // before it was shared
		if use.Reset = k.reset.Swap(false); k.asked.Swap(false) || use.Reset || more != nil {
			use.Key, use.Tokens, use.moved = key, k.taken.Swap(0), 0
			if more != nil {
				use.Tokens, use.moved = use.Tokens+*more, *more
				delete(moved, key)
			}
			uses = append(uses, use)
		}
	}
	use.Reset = false
	for key, tokens := range moved {
		use.Key, use.Tokens, use.moved = key, *tokens, *tokens
		uses = append(uses, use)
	}
	return uses
}

// maxLag is how long what other instances admit may be unknown, in ns: it bounds what a key can owe.
const maxLag = int64(2e9)

// most is what a key can owe, in ns.
func (f *FleetShare) most(r *RateLimiter) int64 {
	n := max(f.instances.Load(), 1)
	return min(r.depth+r.maxDelay, maxDepth/(n+1))*(n+1) + n*maxLag
}

// perToken is how long the part of this instance takes to earn a token, in ns.
func (f *FleetShare) perToken(r *RateLimiter) int64 {
	n := max(f.instances.Load(), 1)
	return min(r.perToken, maxDepth/2/n) * n
}

// Learn takes the answer: how long it takes at now until the burst of each key of uses is whole again, in ns.
func (f *FleetShare) Learn(now int64, uses []FleetUse, debts []int64) {
	r, old := f.rate.Load(), *f.keys.Load()
	next := make(map[string]*sharedKey, len(old)+len(uses))
	for key, k := range old { // one that owes nothing has its part again
		if k.fullAt.Load() > now || k.asked.Load() {
			next[key] = k
		}
	}
	for i, use := range uses {
		k := old[use.Key]
		switch {
		case k == nil && len(next) >= maxShared:
			continue
		case k == nil:
			k = &sharedKey{}
		}
		k.owe(now+min(max(debts[i], 0), use.Most), r.perToken)
		next[use.Key] = k
	}
	f.keys.Store(&next)
}

// owe takes what the fleet says, and adds what it has not been told of.
func (k *sharedKey) owe(fullAt, perToken int64) {
	for {
		was := k.fullAt.Load()
		if k.fullAt.CompareAndSwap(was, fullAt+k.taken.Load()*perToken) {
			return
		}
	}
}

// Lose says that the fleet could not be told of uses: each key has its part alone, and what it has used of the whole it
// has used of its part. The fleet is told of the uses again, but for what the part has earned back since.
func (f *FleetShare) Lose(now int64, uses []FleetUse) {
	r, old := f.rate.Load(), *f.keys.Load()
	if len(old)+len(uses) == 0 {
		return
	}
	for key, k := range old {
		r.owe([]byte(key), min(k.fullAt.Load(), now+r.depth+r.maxDelay))
	}
	f.keys.Store(&map[string]*sharedKey{})
	part := f.perToken(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, k := range old {
		f.add(key, k.taken.Swap(0), 2*maxShared)
	}
	for _, use := range uses {
		first, second := r.cellsOf([]byte(use.Key))
		debt := max(min(first.Load(), second.Load())-now, 0)
		f.add(use.Key, use.Tokens-use.moved+min(use.moved, (debt+part-1)/part), 2*maxShared)
	}
}

// follow is the share of r, a rate that counts the same keys. Keys are shared anew where rate or burst change: what f
// knows of them r owes then, by whose cells a key is judged until the fleet has counted it.
func (f *FleetShare) follow(now int64, r *RateLimiter) *FleetShare {
	old := f.rate.Load()
	if old.perToken == r.perToken && old.depth == r.depth {
		return f
	}
	next := newFleetShare(r)
	next.instances.Store(f.instances.Load())
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, tokens := range f.moved {
		next.add(key, *tokens, 2*maxShared)
	}
	for key, k := range *f.keys.Load() {
		debt := max(k.fullAt.Load()-now, 0)
		scaled := scaledDebt(debt, old, r)
		r.owe([]byte(key), now+scaled)
		// The fleet keeps a time: at a slower rate that is fewer tokens, of which each instance tells its part.
		next.add(key, k.taken.Load()+max(scaled-debt, 0)/next.perToken(r), 2*maxShared)
	}
	return next
}

// acquire is RateLimiter.Acquire of a shared key.
func (k *sharedKey) acquire(r *RateLimiter, now int64) (used, late int64, ok bool) {
	if !k.asked.Load() {
		k.asked.Store(true)
	}
	for {
		used = k.fullAt.Load()
		next := max(used, now) + r.perToken
		late = next - now - r.depth
		if late > r.maxDelay {
			return next, late, false
		}
		if k.fullAt.CompareAndSwap(used, next) {
			k.taken.Add(1)
			return next, late, true
		}
	}
}

// move notes that a token of a key was taken that is not shared.
func (f *FleetShare) move(key []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if tokens := f.moved[string(key)]; tokens != nil {
		*tokens++
		return
	}
	f.add(string(key), 1, maxShared) // a copy: key is of a request
}

// add notes tokens that the fleet is to be told of, of so many keys at most. f.mu is held.
func (f *FleetShare) add(key string, tokens int64, keys int) {
	switch of := f.moved[key]; {
	case of != nil:
		*of += tokens
	case tokens > 0 && len(f.moved) < keys:
		f.moved[key] = &tokens
	}
}

// forget has the fleet forget what key has used.
func (f *FleetShare) forget(key []byte) {
	if k := (*f.keys.Load())[string(key)]; k != nil {
		k.reset.Store(true)
		k.fullAt.Store(0)
		k.taken.Store(0)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.moved, string(key))
}
