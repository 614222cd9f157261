package limiter

import (
	"fmt"
	"testing"
	"time"
)

// fleetRate is a rate of 100/s that so many instances share.
func fleetRate(burst, instances int) *RateLimiter {
	r := NewRateLimiter(RateSpec{PerSecond: 100, Burst: burst, MaxKeys: 1 << 10, Fleet: true})
	r.Fleet().SetInstances(instances)
	return r
}

// passes is how many of n requests of a key are admitted at once.
func passes(r *RateLimiter, now int64, n int) (admitted int) {
	for range n {
		if _, ok := r.Acquire(now, []byte("k")); ok {
			admitted++
		}
	}
	return admitted
}

// fleetCount is the count of a fleet, which answers at once.
type fleetCount struct{ fullAt map[string]int64 }

func (c *fleetCount) tell(now int64, all ...*RateLimiter) {
	for _, r := range all {
		uses := r.Fleet().Uses()
		debts := make([]int64, len(uses))
		for i, use := range uses {
			if use.Reset {
				delete(c.fullAt, use.Key)
			}
			c.fullAt[use.Key] = max(c.fullAt[use.Key], now) + use.Tokens*use.PerToken
			debts[i] = c.fullAt[use.Key] - now
		}
		r.Fleet().Learn(now, uses, debts)
	}
}

func TestFleetShare_PartIsRateAndBurstByTheInstances(t *testing.T) {
	r, now := fleetRate(40, 0), int64(time.Hour)
	if n := passes(r, now, 10); n != 0 {
		t.Errorf("%d admitted although the instances are not known", n)
	}
	if left, wait, _ := r.Peek(now, []byte("k")); left != 0 || wait <= 0 {
		t.Errorf("Peek tells %d, %v", left, wait)
	}
	r.Fleet().SetInstances(4)
	if n := passes(r, now, 40); n != 10 {
		t.Errorf("%d at once, want a quarter of 40", n)
	}
	if n := passes(r, now+int64(time.Second)/5, 40); n != 5 {
		t.Errorf("%d after 200 ms, want a quarter of 20", n)
	}
	if n := passes(fleetRate(1, 4), now, 5); n != 1 {
		t.Errorf("%d at once, want one token at least", n)
	}
}

func TestFleetShare_KeyThatHasUsedItsPartHasAllThatTheFleetHasLeft(t *testing.T) {
	a, b, now := fleetRate(40, 4), fleetRate(40, 4), int64(time.Hour)
	count := &fleetCount{map[string]int64{}}
	passes(a, now, 11)
	count.tell(now, a)
	if n := passes(a, now, 40); n != 30 {
		t.Errorf("%d more, want the 30 that are left of 40", n)
	}
	passes(b, now, 11)
	count.tell(now, a, b)
	if n := passes(b, now, 40); n != 0 {
		t.Errorf("%d admitted although the fleet has used 50 of 40", n)
	}
	passes(a, now, 1) // is rejected, and so the key is told of
	now += int64(150 * time.Millisecond)
	count.tell(now, a, b)
	if n, m := passes(a, now, 9), passes(b, now, 9); n != 5 || m != 5 {
		t.Errorf("%d and %d after 150 ms, want the 15 that were earned less the 10 above the burst", n, m)
	}
}

// Demand that is even or skewed, and moves: of 10 s and of each second within, the fleet admits what the rate says.
func TestFleetShare_FleetAdmitsTheRateWhereverTheDemandIs(t *testing.T) {
	for instances := 1; instances <= 4; instances++ {
		for name, asks := range map[string]func(i, ms int) bool{ // whether instance i is asked in a millisecond
			"even":  func(int, int) bool { return true },
			"one":   func(i, _ int) bool { return i == 0 },
			"first": func(i, ms int) bool { return ms%[]int{1, 8, 40, 130}[i] == 0 }, // a part of their part at the last
			"moves": func(i, ms int) bool { return i == ms/1000%instances },
		} {
			t.Run(fmt.Sprint(instances, " ", name), func(t *testing.T) {
				count, now := &fleetCount{map[string]int64{}}, int64(time.Hour)
				var all []*RateLimiter
				for range instances {
					all = append(all, fleetRate(20, instances))
				}
				admitted := 0
				for ms := range 10_000 {
					if now += int64(time.Millisecond); ms%100 == 99 {
						count.tell(now, all...)
					}
					for i, r := range all {
						if asks(i, ms) {
							admitted += passes(r, now, 1) // 1,000 a second of each
						}
					}
				}
				if want := 10*100 + 20; admitted < want*95/100 || admitted > want*110/100 {
					t.Errorf("%d admitted in 10 s, want %d", admitted, want)
				}
			})
		}
	}
}

func TestFleetShare_WithoutAnswersAKeyHasItsPartAndWhatItHasUsed(t *testing.T) {
	r, now := fleetRate(40, 4), int64(time.Hour)
	count := &fleetCount{map[string]int64{}}
	passes(r, now, 11)
	count.tell(now, r)
	passes(r, now, 40)
	r.Fleet().Lose(now, r.Fleet().Uses())
	if n := passes(r, now, 40); n != 0 || r.Fleet().Shared() != 0 {
		t.Errorf("%d admitted once more, %d keys are shared", n, r.Fleet().Shared())
	}
	if n := passes(r, now+int64(time.Second), 100); n != 10 {
		t.Errorf("%d a second later, want the part of the burst", n)
	}
}

// Calls that fail now and then lose nothing of what was used: the fleet admits its rate, as it does without faults.
// What was counted although its answer was lost counts twice, and no longer than a key can owe.
func TestFleetShare_CallsThatFailNowAndThenGiveNoBurstAgain(t *testing.T) {
	for name, fails := range map[string]func(i, call int) bool{
		"every other call": func(_, call int) bool { return call%2 == 0 },
		"in turn":          func(i, call int) bool { return call%2 == i },
		"of one":           func(i, call int) bool { return i == 0 && call%3 > 0 },
		"for 5 s":          func(_, call int) bool { return call/50%2 == 1 },
		"for 25 s of one":  func(i, call int) bool { return i == 0 && call/250%2 == 1 },
	} {
		for _, written := range []bool{false, true} { // a call that fails may have been counted
			count, now, admitted := &fleetCount{map[string]int64{}}, int64(time.Hour), 0
			all := make([]*RateLimiter, 2)
			for i := range all {
				all[i] = NewRateLimiter(RateSpec{PerSecond: 1, Burst: 20, MaxKeys: 1 << 10, Fleet: true})
				all[i].Fleet().SetInstances(2)
			}
			for step := range 6000 { // a minute
				now += int64(10 * time.Millisecond)
				for i, r := range all {
					admitted += passes(r, now, 1)
					switch {
					case step%10 != 9:
					case !fails(i, step/10):
						count.tell(now, r)
					default:
						uses := r.Fleet().Uses()
						for _, use := range uses {
							if written {
								count.fullAt[use.Key] = max(count.fullAt[use.Key], now) + use.Tokens*use.PerToken
							}
						}
						r.Fleet().Lose(now, uses)
					}
				}
			}
			if most := 20 + 60 + 2*20; admitted > most {
				t.Errorf("%s, written %v: %d admitted, want %d at most", name, written, admitted, most)
			}
			count.tell(now, all...)
			if _, wait, _ := all[1].Peek(now, []byte("k")); wait > 20*time.Second && !written {
				t.Errorf("%s: then rejected for %v, longer than a burst takes", name, wait)
			}
		}
	}
}

func TestFleetShare_KeyThatOwesNothingIsNotSharedAnyMore(t *testing.T) {
	r, now := fleetRate(4, 2), int64(time.Hour)
	count := &fleetCount{map[string]int64{}}
	passes(r, now, 5)
	count.tell(now, r)
	if r.Fleet().Shared() != 1 {
		t.Fatal("the key is not shared")
	}
	count.tell(now+int64(time.Millisecond), r)
	if r.Fleet().Shared() != 1 {
		t.Error("it is not shared any more although it owes")
	}
	for range 2 {
		if count.tell(now+int64(time.Second), r); len(r.Fleet().Uses()) != 0 {
			t.Error("a key that was not asked for is told of")
		}
	}
	if r.Fleet().Shared() != 0 {
		t.Error("it is shared still")
	}
}

func TestFleetShare_KeysAreBoundedAndFurtherOnesKeepTheirPart(t *testing.T) {
	r, now := NewRateLimiter(RateSpec{PerSecond: 1, Burst: 4, MaxKeys: 1 << 16, Fleet: true}), int64(time.Hour)
	r.Fleet().SetInstances(2)
	count := &fleetCount{map[string]int64{}}
	ask := func(key string) (n int) {
		for range 4 {
			if _, ok := r.Acquire(now, []byte(key)); ok {
				n++
			}
		}
		return n
	}
	for round := range 3 {
		for i := range 2 * maxShared {
			ask(fmt.Sprint(round, " ", i))
		}
		if n := len(r.Fleet().moved); n > maxShared {
			t.Errorf("%d keys are to be told of", n)
		}
		if count.tell(now, r); r.Fleet().Shared() > maxShared {
			t.Fatalf("%d keys are shared", r.Fleet().Shared())
		}
	}
	if n := ask("one more"); n != 2 {
		t.Errorf("%d admitted of a further key, want its part", n)
	}
}

func TestFleetShare_ResetIsToldToTheFleet(t *testing.T) {
	a, b, now := fleetRate(4, 2), fleetRate(4, 2), int64(time.Hour)
	count := &fleetCount{map[string]int64{}}
	passes(a, now, 3)
	count.tell(now, a)
	passes(a, now, 2) // is shared
	a.Reset([]byte("k"))
	b.Reset([]byte("k"))
	if count.tell(now, a, b); passes(a, now, 9) != 4 {
		t.Error("the key has not its whole burst")
	}
}

func TestFleetShare_ReloadKeepsWhatIsShared(t *testing.T) {
	s := NewRateLimiters(func() int64 { return 1 })
	spec := RateSpec{Name: "r", Of: "k", PerSecond: 1, Burst: 1, MaxKeys: 10, Fleet: true}
	first := s.Prepare([]RateSpec{spec})
	s.Use(first)
	first[0].Fleet().SetInstances(2)
	if s.Use(s.Prepare([]RateSpec{spec})); s.Fleet()["r"] != first[0].Fleet() {
		t.Error("the share is another after a reload")
	}
	spec.PerSecond = 2
	s.Use(s.Prepare([]RateSpec{spec}))
	if next := s.Fleet()["r"]; next == first[0].Fleet() || next.instances.Load() != 2 {
		t.Error("another rate has the old share, or does not know the instances")
	}
	if spec.Fleet = false; s.Prepare([]RateSpec{spec})[0].Fleet() != nil {
		t.Error("an instance's own rate is shared")
	}
}

// What is only prepared changes nothing, and a rate that is put into force gives no key its burst again.
func TestFleetShare_ReloadKeepsWhatSharedKeysHaveUsed(t *testing.T) {
	now := int64(time.Hour)
	s := NewRateLimiters(func() int64 { return now })
	spec := RateSpec{Name: "r", Of: "k", PerSecond: 1, Burst: 10, MaxDelay: time.Second, MaxKeys: 10, Fleet: true}
	s.Use(s.Prepare([]RateSpec{spec}))
	before, count := s.inForce[0], &fleetCount{map[string]int64{}}
	before.Fleet().SetInstances(2)
	passes(before, now, 1)
	count.tell(now, before)
	if n := passes(before, now, 20); n != 10 {
		t.Fatalf("%d more, want what is left of burst and delay", n)
	}
	spec.MaxDelay = 0
	next := s.Prepare([]RateSpec{spec})
	if before.Fleet().rate.Load() != before {
		t.Error("the share is of a rate that was only prepared")
	}
	if s.Use(next); next[0].Fleet().rate.Load() != next[0] {
		t.Error("the share is not of the rate in force")
	}
	for _, perSecond := range []float64{2, 1, 0.5, 4} {
		spec.PerSecond = perSecond
		s.Use(s.Prepare([]RateSpec{spec}))
		if n := passes(s.inForce[0], now, 20); n != 0 {
			t.Errorf("%v/s: %d admitted although all of the burst is used", perSecond, n)
		}
	}
	if uses := s.inForce[0].Fleet().Uses(); len(uses) != 1 || uses[0].Tokens != 10 {
		t.Errorf("the fleet will be told of %+v, want the 10 tokens that it does not know of", uses)
	}
	whole := fleetRate(20, 1)
	count = &fleetCount{map[string]int64{}}
	passes(whole, now, 1)
	count.tell(now, whole)
	passes(whole, now, 19)
	count.tell(now, whole)
	half := NewRateLimiter(RateSpec{PerSecond: 50, Burst: 20, MaxKeys: 1 << 10, Fleet: true})
	half.fleet = whole.Fleet().follow(now, half)
	if count.tell(now, half); half.Fleet().Shared() != 1 || passes(half, now, 20) != 0 {
		t.Error("a key that has used its burst has some of it at half the rate")
	}
}

func TestFleetShare_DecisionsDoNotAllocate(t *testing.T) {
	r, now := fleetRate(1, 2), int64(time.Hour)
	key := []byte("203.0.113.9, a key of some length")
	r.Acquire(now, key)
	r.Acquire(now, key)
	r.Acquire(now, key[:7])
	r.Acquire(now, key[:7])
	(&fleetCount{map[string]int64{}}).tell(now, r)
	r.Acquire(now, key[:8])
	r.Acquire(now, key[:8])
	if n := testing.AllocsPerRun(200, func() { r.Acquire(now, key); r.Peek(now, key); r.Acquire(now, key[:8]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFleetShare_Rejected(b *testing.B) {
	r, now := fleetRate(1, 2), int64(time.Hour)
	key := []byte("203.0.113.9, a key")
	r.Acquire(now, key)
	r.Acquire(now, key)
	(&fleetCount{map[string]int64{}}).tell(now, r)
	b.RunParallel(func(pb *testing.PB) {
		for i := int64(0); pb.Next(); i++ {
			r.Acquire(now+i&1023, key)
		}
	})
}
