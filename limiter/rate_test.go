package limiter

import (
	"encoding/binary"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// perMs is a rate of one token each ms.
func perMs(burst, maxKeys int) *RateLimiter {
	return NewRateLimiter(RateSpec{PerSecond: 1000, Burst: burst, MaxKeys: maxKeys})
}

// plainRate is a keyed rate that anyone can check: the tokens of each key, in ns to earn them.
type plainRate struct {
	burst  int64
	tokens map[string]int64 // no entry = a whole burst
	seen   map[string]int64
}

func (p *plainRate) take(now int64, key string) (wait time.Duration, ok bool) {
	have, before := p.tokens[key]
	if !before {
		have = p.burst * ms
	}
	have = min(p.burst*ms, have+now-p.seen[key])
	p.seen[key] = now
	if have >= ms {
		p.tokens[key] = have - ms
		return 0, true
	}
	p.tokens[key] = have
	return time.Duration(ms - have), false
}

// apart finds n keys of which no two share a cell.
func apart(r *RateLimiter, n int) (keys []string) {
	taken := map[*atomic.Int64]bool{}
	for i := 0; len(keys) < n; i++ {
		key := strconv.Itoa(i)
		first, second := r.cellsOf([]byte(key))
		if !taken[first] && !taken[second] {
			taken[first], taken[second] = true, true
			keys = append(keys, key)
		}
	}
	return keys
}

func TestRate_DecidesAsPlainTokensDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		burst := rapid.IntRange(1, 5).Draw(t, "burst")
		rate := perMs(burst, 256)
		keys := apart(rate, 3)
		plain := plainRate{int64(burst), map[string]int64{}, map[string]int64{}}
		now := int64(0)
		for range rapid.IntRange(1, 80).Draw(t, "requests") {
			now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 3*ms), rapid.Just(int64(time.Hour))).Draw(t, "pause")
			key := rapid.SampledFrom(keys).Draw(t, "key")
			left, wait, whole := rate.Peek(now, []byte(key))
			if again, _, _ := rate.Peek(now, []byte(key)); again != left {
				t.Fatalf("to look took something: %d, then %d", left, again)
			}
			gotWait, ok := rate.Acquire(now, []byte(key))
			wantWait, want := plain.take(now, key)
			if ok != want || gotWait != wantWait {
				t.Fatalf("Acquire(%d, %s) = %v, %v; want %v, %v", now, key, gotWait, ok, wantWait, want)
			}
			had := plain.tokens[key]
			if want {
				had += ms
			}
			if int64(left) != had/ms || wait != wantWait || int64(whole) != int64(burst)*ms-had {
				t.Fatalf("Peek(%d, %s) = %d, %v, %v; it had %v", now, key, left, wait, whole, time.Duration(had))
			}
		}
	})
}

// No more than rate·t + burst of a key are admitted within any t, also where keys share cells, and where callers are
// overtaken and pass times that are over.
func TestRate_IsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		burst := rapid.IntRange(1, 4).Draw(t, "burst")
		rate := perMs(burst, rapid.IntRange(1, 4).Draw(t, "maxKeys"))
		admitted := map[string][]int64{}
		now := int64(0)
		for range rapid.IntRange(1, 120).Draw(t, "requests") {
			now += rapid.Int64Range(0, 2*ms).Draw(t, "pause")
			at := max(0, now-rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 5*ms)).Draw(t, "overtaken"))
			key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
			if _, ok := rate.Acquire(at, []byte(key)); ok {
				admitted[key] = append(admitted[key], at)
			}
		}
		for key, times := range admitted {
			for _, from := range times {
				for _, to := range times {
					n := int64(0)
					for _, at := range times {
						if from <= at && at <= to {
							n++
						}
					}
					if from <= to && n > (to-from)/ms+int64(burst) {
						t.Fatalf("%d of %s admitted from %d to %d, burst %d: %v", n, key, from, to, burst, times)
					}
				}
			}
		}
	})
}

// At one instant exactly a burst is admitted of each key, by however many threads it is asked for.
func TestRate_RacesForATokenHaveOneWinner(t *testing.T) {
	const burst, threads, keys = 100, 4, 3
	for _, maxKeys := range []int{1, 1 << 16} { // one cell a row for all keys, and cells enough
		for range 20 {
			rate := perMs(burst, maxKeys)
			var admitted [keys]atomic.Int64
			var all sync.WaitGroup
			for range threads {
				all.Go(func() {
					for i := range keys * burst {
						if _, ok := rate.Acquire(0, []byte{byte(i % keys)}); ok {
							admitted[i%keys].Add(1)
						}
					}
				})
			}
			all.Wait()
			sum := int64(0)
			for i := range admitted {
				sum += admitted[i].Load()
				if n := admitted[i].Load(); maxKeys > keys && n != burst {
					t.Fatalf("%d of key %d were admitted, want %d", n, i, burst)
				}
			}
			if maxKeys == 1 && sum != burst {
				t.Fatalf("%d were admitted by one cell, want %d", sum, burst)
			}
		}
	}
}

// cellsOf shows all cells that were ever written.
func cellsOf(r *RateLimiter) map[string]int64 {
	all := map[string]int64{}
	for i := range r.all {
		if v := r.all[i].Load(); v != 0 {
			all[strconv.Itoa(i)] = v
		}
	}
	return all
}

func TestRate_RejectedByARateWritesNothing(t *testing.T) {
	rate := perMs(2, 64)
	rate.Acquire(0, []byte("a"))
	rate.Acquire(0, []byte("a"))
	before := cellsOf(rate)
	if len(before) != 2 {
		t.Fatalf("a key has %d cells, want 2", len(before))
	}
	for range 10 {
		if wait, ok := rate.Acquire(ms/2, []byte("a")); ok || wait != time.Duration(ms/2) {
			t.Fatalf("got %v, %v; want a rejection until the next token", wait, ok)
		}
	}
	if diff := cmp.Diff(before, cellsOf(rate)); diff != "" {
		t.Errorf("rejections wrote (-before +after):\n%s", diff)
	}
}

// One row alone would reject a key that shares a cell with a key that has nothing left.
func TestRate_RejectsOnlyWhenBothRowsSayNo(t *testing.T) {
	rate := perMs(1, 64)
	rate.Acquire(0, []byte("loud"))
	loud := [2]*atomic.Int64{}
	loud[0], loud[1] = rate.cellsOf([]byte("loud"))
	shared := [2]int{}
	for i := range 10_000 {
		key := strconv.Itoa(i)
		first, second := rate.cellsOf([]byte(key))
		left, _, _ := rate.Peek(0, []byte(key))
		switch both := first == loud[0] && second == loud[1]; {
		case both && left != 0:
			t.Fatalf("%s shares both cells, and has %d left", key, left)
		case !both && left != 1:
			t.Fatalf("%s does not share both cells, and has %d left", key, left)
		case first == loud[0] && !both:
			shared[0]++
		case second == loud[1] && !both:
			shared[1]++
		}
	}
	if shared[0] == 0 || shared[1] == 0 {
		t.Error("no key shared a cell: nothing was tested")
	}
}

func TestRate_KeepsWithinRangeWhatIsBeyondIt(t *testing.T) {
	for _, c := range []struct {
		spec            RateSpec
		perToken, depth int64
	}{
		{RateSpec{PerSecond: 3, Burst: 2}, 333_333_334, 666_666_668},
		{RateSpec{PerSecond: 1e12, Burst: 0}, 1, 1},
		{RateSpec{PerSecond: 0, Burst: 5}, maxDepth, maxDepth},
		{RateSpec{PerSecond: math.NaN(), Burst: 5}, maxDepth, maxDepth},
		{RateSpec{PerSecond: 1, Burst: math.MaxInt}, 1e9, maxDepth / 1_000_000_000 * 1_000_000_000},
	} {
		r := NewRateLimiter(c.spec)
		if r.perToken != c.perToken || r.depth != c.depth || r.bytes() != 16 {
			t.Errorf("%+v: %d a token, %d deep, %d bytes; want %d, %d, 16",
				c.spec, r.perToken, r.depth, r.bytes(), c.perToken, c.depth)
		}
		const late = int64(1) << 61 // a clock that has run for 73 years
		if _, ok := r.Acquire(late, []byte("a")); !ok {
			t.Errorf("%+v: the first is rejected", c.spec)
		}
	}
}

func TestRate_AllocatesNothing(t *testing.T) {
	rate, now, key := perMs(1, 1<<10), int64(0), make([]byte, 8)
	if n := testing.AllocsPerRun(1000, func() {
		binary.NativeEndian.PutUint64(key, uint64(now/3))
		rate.Acquire(now, key)
		rate.Peek(now, key)
		now++
	}); n != 0 {
		t.Errorf("%v allocations a decision, want 0", n)
	}
}

// A rejection writes nothing that other cores read, so it must not count towards the near-limit signal.
func TestRateLimiter_CountsAdmissionsNearTheLimit(t *testing.T) {
	rate, key := NewRateLimiter(RateSpec{PerSecond: 1, Burst: 10, MaxKeys: 100}), []byte("a")
	for i, want := range []uint64{0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3} {
		if rate.Acquire(0, key); rate.near.sum() != want {
			t.Errorf("%d nearly limited after %d requests, want %d", rate.near.sum(), i+1, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := rate.Acquire(0, key); ok {
			t.Fatal("it was admitted")
		}
	}); n != 0 || rate.near.sum() != 3 {
		t.Errorf("%v allocations a rejection, %d nearly limited; want 0 and 3", n, rate.near.sum())
	}
}

func TestRateLimiters_NearCountsGoOnAfterAReload(t *testing.T) {
	all := NewRateLimiters(func() int64 { return 0 })
	spec := RateSpec{Name: "a", PerSecond: 1, Burst: 1, MaxKeys: 100}
	all.Use(all.Prepare([]RateSpec{spec}))
	all.Named("a").Acquire(0, []byte("x"))
	spec.MaxKeys = 200
	all.Use(all.Prepare([]RateSpec{spec}))
	if got := all.Named("a").near.sum(); got != 1 {
		t.Errorf("%d, want 1", got)
	}
	if all.Named("b") != nil {
		t.Error("a rate that is not there was found")
	}
}

func TestRateLimiter_ResetGivesTheBurstBack(t *testing.T) {
	rate, a, b := NewRateLimiter(RateSpec{PerSecond: 1, Burst: 3, MaxKeys: 1 << 16}), []byte("a"), []byte("b")
	for range 5 {
		rate.Acquire(0, a)
		rate.Acquire(0, b)
	}
	rate.Reset(a)
	if left, wait, whole := rate.Peek(0, a); left != 3 || wait != 0 || whole != 0 {
		t.Errorf("%d left, %v, %v after a reset; want all", left, wait, whole)
	}
	if left, _, _ := rate.Peek(0, b); left != 0 {
		t.Errorf("another key has %d left, want 0", left)
	}
}
