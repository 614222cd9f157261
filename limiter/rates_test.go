package limiter

import (
	"sluice/internal/testkit"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func standing() int64 { return 0 }

// used tells which of the rates' keys "a" have nothing left.
func used(rates []*RateLimiter) (empty []bool) {
	for _, r := range rates {
		left, _, _ := r.Peek(0, []byte("a"))
		empty = append(empty, left == 0)
	}
	return empty
}

// No key gets a new burst by a change that does not concern its rate, nor by one of rate and burst.
func TestRates_ForgetNothingThatGoesOn(t *testing.T) {
	specs := []RateSpec{
		{Name: "same", Of: "$remote_addr", PerSecond: 1, Burst: 2, MaxKeys: 100},
		{Name: "slower", Of: "$remote_addr", PerSecond: 1, Burst: 2, MaxKeys: 100},
		{Name: "of another key", Of: "$remote_addr", PerSecond: 1, Burst: 2, MaxKeys: 100},
		{Name: "larger", Of: "$remote_addr", PerSecond: 1, Burst: 2, MaxKeys: 100},
		{Name: "gone", Of: "$remote_addr", PerSecond: 1, Burst: 2, MaxKeys: 100},
	}
	s := NewRateLimiters(standing)
	before := s.Prepare(specs)
	s.Use(before)
	for _, r := range before {
		r.Acquire(0, []byte("a"))
		r.Acquire(0, []byte("a"))
	}
	specs = specs[:4]
	specs[1].PerSecond, specs[1].Burst = 0.5, 2
	specs[2].Of = "$cookie_uid"
	specs[3].MaxKeys = 200
	after := s.Prepare(specs)
	if again := s.Prepare(specs); again[2].cells == after[2].cells {
		t.Error("what was only prepared is in force")
	}
	before[1].Acquire(0, []byte("b")) // a reload may take its time
	s.Use(after)
	if left, _, _ := after[1].Peek(0, []byte("b")); left != 1 {
		t.Errorf("%d left of a key that was used after Prepare, want 1", left)
	}
	if diff := cmp.Diff([]bool{true, true, false, false}, used(after)); diff != "" {
		t.Errorf("keys that have nothing left (-want +got):\n%s", diff)
	}
}

// A key has used as many tokens of the new rate as of the old one, or all of them.
func TestRates_AnotherRateOrBurstCountsInTokensWhatWasUsed(t *testing.T) {
	for _, c := range []struct {
		perSecond   float64
		burst, left int
		whole       time.Duration
	}{
		{1, 10, 7, 3 * time.Second}, {100, 10, 7, 30 * time.Millisecond}, {0.01, 10, 7, 300 * time.Second},
		{1, 20, 17, 3 * time.Second}, {1, 3, 0, 3 * time.Second}, {2, 2, 0, time.Second},
	} {
		s := NewRateLimiters(standing)
		spec := RateSpec{PerSecond: 1, Burst: 10, MaxKeys: 1000}
		s.Use(s.Prepare([]RateSpec{spec}))
		for range 3 {
			s.inForce[0].Acquire(0, []byte("a"))
		}
		spec.PerSecond, spec.Burst = c.perSecond, c.burst
		s.Use(s.Prepare([]RateSpec{spec}))
		after := s.inForce[0]
		if left, _, whole := after.Peek(0, []byte("a")); left != c.left || whole != c.whole {
			t.Errorf("%v/s, burst %d: %d left, whole in %v; want %d, %v", c.perSecond, c.burst, left, whole, c.left, c.whole)
		}
		if left, _, whole := after.Peek(0, []byte("b")); left != c.burst || whole != 0 {
			t.Errorf("%v/s, burst %d: another key has %d left, whole in %v", c.perSecond, c.burst, left, whole)
		}
	}
}

func TestRates_ShowTheirTables(t *testing.T) {
	s := NewRateLimiters(standing)
	rates := s.Prepare([]RateSpec{
		{Name: "a", PerSecond: 1, Burst: 1, MaxKeys: 1}, {Name: "b", PerSecond: 1, Burst: 1, MaxKeys: 10_000},
	})
	s.Use(rates)
	rates[0].Acquire(0, []byte("x"))
	want := map[string]float64{
		"sluice_rate_table_fill_ratio a": 1, "sluice_rate_table_bytes a": 16,
		"sluice_rate_table_fill_ratio b": 0, "sluice_rate_table_bytes b": 163_840,
		"sluice_rate_nearly_limited_total a": 1, "sluice_rate_nearly_limited_total b": 0,
	}
	if diff := cmp.Diff(want, testkit.Series(t, s)); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
}
