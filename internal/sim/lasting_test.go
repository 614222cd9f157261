package sim

// Time in this file is virtual (testing/synctest).

import (
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	lastingSeeds = 12              // one seed of so many has faults that last for minutes
	near         = 2 * time.Second // of a moment at which such a fault begins or ends
	moreOrders   = 16              // of such a seed: there are more times at which orders come
)

// lasting are the faults of a seed that last for minutes. Most of what else a seed draws comes just before Redis goes,
// just after it returns, or near the begin or end of another such fault. They have a source of their own: a seed
// without them draws what it would draw if there were none.
type lasting struct {
	r             *rand.Rand // nil = there is none
	w             *world
	goes, returns time.Duration // Redis
	steps         []step
}

// planLasting draws the faults that last for minutes: Redis is away, and instances are cut off or killed before that,
// or with it, or some other time.
func (w *world) planLasting() *lasting {
	r := rand.New(rand.NewPCG(w.seed, 1))
	if r.IntN(lastingSeeds) > 0 {
		return &lasting{w: w}
	}
	l := &lasting{r: r, w: w, goes: between(r, time.Minute, 2*time.Minute)}
	cutOff := r.IntN(len(w.gateways))
	l.returns = l.goes + between(r, 61*time.Second, 150*time.Second)
	if r.IntN(8) > 0 {
		l.outage()
	}
	l.partition(cutOff)
	if r.IntN(3) == 0 {
		l.partition(r.IntN(len(w.gateways)))
	}
	for range r.IntN(3) {
		l.absence((cutOff + r.IntN(4)) % len(w.gateways))
	}
	return l
}

func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// around is a time near another one.
func around(r *rand.Rand, t time.Duration) time.Duration { return max(0, between(r, t-near, t+near)) }

func (l *lasting) add(at time.Duration, what string, do func()) {
	l.steps = append(l.steps, step{at, what, do})
}

// outage has Redis go, and come back without its last writes.
func (l *lasting) outage() {
	away, ago := l.returns-l.goes, time.Duration(l.r.IntN(3_000_000_000))
	l.add(l.goes, fmt.Sprintf("Redis is away for %v, and has its data of %v before then", away, ago), func() {
		l.w.failOver(l.w.since(ago), away)
	})
	l.add(l.returns, "Redis is there again", func() {})
}

// partition cuts an instance off: before Redis goes and until it returns, about, or since it goes, or some other time.
func (l *lasting) partition(n int) {
	from, lasts := around(l.r, l.goes), between(l.r, time.Minute, 4*time.Minute)
	switch l.r.IntN(6) {
	case 0:
	case 1:
		from = between(l.r, 0, l.returns)
	default:
		to := around(l.r, l.returns)
		from = between(l.r, max(time.Second, to-4*time.Minute), l.goes)
		lasts = to - from
	}
	l.add(from, fmt.Sprintf("g%d is cut off from Redis", n), func() { l.w.network.part(l.w.at(n)) })
	l.add(from+lasts, fmt.Sprintf("g%d reaches Redis again", n), func() { l.w.network.join(l.w.at(n)) })
}

// absence kills an instance, as Redis goes, or some other time, and starts it minutes later.
func (l *lasting) absence(n int) {
	from, lasts := l.goes+time.Duration(l.r.Int64N(int64(near))), between(l.r, time.Minute, 3*time.Minute)
	if l.r.IntN(3) == 0 {
		from = between(l.r, 0, l.goes+time.Minute)
	}
	l.add(from, fmt.Sprintf("g%d is killed, and comes back after %v", n, lasts), func() { l.w.restart(n, true, lasts) })
	l.add(from+lasts, fmt.Sprintf("g%d comes back", n), func() {})
}

// more is how many orders more a seed has.
func (l *lasting) more() int {
	if l.r == nil {
		return 0
	}
	return moreOrders
}

// moved is when a step comes that was drawn for a time within the first seconds.
func (l *lasting) moved(at time.Duration) time.Duration {
	if l.r == nil {
		return at
	}
	switch l.r.IntN(4) {
	case 0:
		return at
	case 1:
		return l.goes - time.Duration(l.r.Int64N(int64(near/2)))
	case 2:
		return l.returns + time.Duration(l.r.Int64N(int64(near)))
	}
	return around(l.r, l.steps[l.r.IntN(len(l.steps))].at)
}

// end is when all faults have ended.
func (l *lasting) end() time.Duration {
	end := l.w.lasts
	if l.r != nil {
		end += l.returns
	}
	for _, s := range l.steps {
		end = max(end, s.at+l.w.lasts)
	}
	return end
}
