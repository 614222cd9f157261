package limiter

import (
	"testing"
	"time"
)

func fleetRate(burst int) *RateLimiter {
	return NewRateLimiter(RateSpec{PerSecond: 100, Burst: burst, MaxKeys: 1 << 10, Fleet: true})
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

var testSeed = [2]uint64{1, 2}

func TestFleetShare_PartHasItsPartOfRateAndBurst(t *testing.T) {
	r, now := fleetRate(40), int64(time.Hour)
	if n := passes(r, now, 10); n != 0 {
		t.Errorf("%d admitted without a part", n)
	}
	if left, wait, _ := r.Peek(now, []byte("k")); left != 0 || wait <= 0 {
		t.Errorf("Peek tells %d, %v without a part", left, wait)
	}
	r.Fleet().SetParts(testSeed, 0.25, nil)
	if n := passes(r, now, 40); n != 10 {
		t.Errorf("%d at once, want a quarter of 40", n)
	}
	if n := passes(r, now+int64(time.Second)/5, 40); n != 5 {
		t.Errorf("%d after 200 ms, want a quarter of 20", n)
	}
	r = fleetRate(1)
	r.Fleet().SetParts(testSeed, 0.25, nil)
	if n := passes(r, now, 5); n != 1 {
		t.Errorf("%d at once, want one token at least", n)
	}
}

func TestFleetShare_BusyKeyIsToldAndCounted(t *testing.T) {
	r, now := fleetRate(4), int64(time.Hour)
	f := r.Fleet()
	f.SetParts(testSeed, 0.5, nil)
	f.Demand(time.Second)
	passes(r, now, 2)
	if d := f.Demand(2 * time.Second); len(d) != 0 {
		t.Errorf("%+v before anything is rejected", d)
	}
	passes(r, now, 3)
	id := keyed64(testSeed, []byte("k"))
	d := f.Demand(3 * time.Second)
	if len(d) != 1 || d[0] != (FleetDemand{Key: id, PerSecond: -1, Share: 0.5}) {
		t.Fatalf("%+v, want the key that was rejected", d)
	}
	f.SetParts(testSeed, 0.5, []FleetPart{{id, 0.75}, {7, 0.1}})
	passes(r, now, 8)
	for _, d := range f.Demand(5 * time.Second) {
		if d.Key == id && (d.PerSecond != 4 || d.Share != 0.75) || d.Key == 7 && d.PerSecond != 0 {
			t.Errorf("%+v", d)
		}
	}
	f.SetParts([2]uint64{3, 4}, 0.5, nil) // another secret: other names
	if d := f.Demand(6 * time.Second); len(d) != 0 {
		t.Errorf("%+v, want nothing", d)
	}
}

func TestFleetShare_UnusedBurstDoesNotGrowWithThePartWhileAllIsUsed(t *testing.T) {
	r, now := fleetRate(40), int64(time.Hour)
	f := r.Fleet()
	f.SetParts(testSeed, 0.25, nil)
	passes(r, now, 40)
	f.SetParts(testSeed, 1, nil)
	if n := passes(r, now, 40); n != 0 {
		t.Errorf("%d more at once since the part has grown", n)
	}
}

func TestFleetShare_ReloadKeepsThePart(t *testing.T) {
	s := NewRateLimiters(func() int64 { return 1 })
	spec := RateSpec{Name: "r", Of: "k", PerSecond: 1, Burst: 1, MaxKeys: 10, Fleet: true}
	first := s.Prepare([]RateSpec{spec})
	s.Use(first)
	first[0].Fleet().SetParts(testSeed, 0.5, nil)
	spec.PerSecond = 2
	second := s.Prepare([]RateSpec{spec})
	if second[0].Fleet() != first[0].Fleet() || s.Fleet()["r"] != first[0].Fleet() {
		t.Error("the part is another after a reload")
	}
	if spec.Fleet = false; s.Prepare([]RateSpec{spec})[0].Fleet() != nil {
		t.Error("an instance's own rate has a part")
	}
}

func TestFleetShare_DecisionsDoNotAllocate(t *testing.T) {
	r, now := fleetRate(1), int64(time.Hour)
	key := []byte("203.0.113.9, a key of some length")
	r.Fleet().SetParts(testSeed, 0.5, []FleetPart{{keyed64(testSeed, key), 0.5}})
	if n := testing.AllocsPerRun(200, func() { r.Acquire(now, key); r.Peek(now, key); r.Acquire(now, key[:7]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestKeyed64_DependsOnEveryByteAndTheSeed(t *testing.T) {
	seen := map[uint64]string{}
	for _, seed := range [][2]uint64{{1, 2}, {2, 1}, {0, 0}} {
		for _, text := range []string{"", "a", "b", "aa", "1234567", "12345678", "123456789", "12345678\x00", "\x00"} {
			hash := keyed64(seed, []byte(text))
			if other, is := seen[hash]; is {
				t.Errorf("%q with %v has the hash of %q", text, seed, other)
			}
			seen[hash] = text
		}
	}
}

func BenchmarkFleetShare_Rejected(b *testing.B) {
	r, now := fleetRate(1), int64(time.Hour)
	key := []byte("203.0.113.9, a key")
	r.Fleet().SetParts(testSeed, 0.5, []FleetPart{{keyed64(testSeed, key), 0.5}})
	b.RunParallel(func(pb *testing.PB) {
		for i := int64(0); pb.Next(); i++ {
			r.Acquire(now+i&1023, key)
		}
	})
}
