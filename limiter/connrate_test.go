package limiter

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestConnrate_ConnRateAdmitsItsBurstAndThenItsRate(t *testing.T) {
	c, at := NewConnRate(10, 3), time.Unix(1000, 0)
	admitted := 0
	for i := range 1000 { // ten seconds, a request every 10 ms
		if _, ok := c.Allow(at.Add(time.Duration(i) * 10 * time.Millisecond)); ok {
			admitted++
		}
	}
	if admitted < 101 || admitted > 103 {
		t.Errorf("%d admitted in 9.99 s, want 3 at once and 99 or so after", admitted)
	}
}

func TestConnrate_WhoWaitsAsToldIsAdmitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.Float64Range(0.01, 10_000).Draw(t, "rate")
		c := NewConnRate(perSecond, rapid.IntRange(0, 5).Draw(t, "burst"))
		at := time.Unix(1000, 0)
		for range 20 {
			at = at.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")))
			for range 3 { // a rejection consumes nothing: asking again changes nothing
				wait, ok := c.Allow(at)
				again, okAgain := c.Allow(at)
				if !ok && (okAgain || again != wait || wait <= 0) {
					t.Fatalf("rejected for %v, then %v, %v at the same time", wait, again, okAgain)
				}
				if !ok && wait > time.Duration(float64(time.Second)/perSecond)+2 {
					t.Fatalf("told to wait for %v at %v requests a second", wait, perSecond)
				}
				if !ok {
					at = at.Add(wait)
					if _, ok := c.Allow(at); !ok {
						t.Fatalf("rejected after waiting for %v as told", wait)
					}
				}
			}
		}
	})
}

func TestConnrate_WithoutARateNothingIsLimited(t *testing.T) {
	for _, c := range []ConnRate{{}, NewConnRate(0, 1), NewConnRate(-1, 1), NewConnRate(math.NaN(), 1)} {
		for range 1000 {
			if wait, ok := c.Allow(time.Unix(0, 0)); !ok || wait != 0 {
				t.Fatalf("%v, %v; want 0, true", wait, ok)
			}
		}
	}
}

func TestConnrate_WaitThatNoDurationCanHoldIsTheLongest(t *testing.T) {
	c := NewConnRate(1e-300, 1)
	c.Allow(time.Unix(0, 0))
	if wait, ok := c.Allow(time.Unix(0, 0)); ok || wait != math.MaxInt64 {
		t.Errorf("%v, %v; want the longest duration, false", wait, ok)
	}
}

func TestConnrate_ConnRateAllocatesNothing(t *testing.T) {
	c, at := NewConnRate(1, 10), time.Unix(0, 0)
	if n := testing.AllocsPerRun(1000, func() { c.Allow(at) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
