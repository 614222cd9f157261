package limiter

import (
	"testing"
	"time"
)

func TestRate_RequestsBeyondTheBurstWaitOneAfterTheOther(t *testing.T) {
	rate := NewRateLimiter(RateSpec{PerSecond: 1000, Burst: 2, MaxDelay: 3 * time.Millisecond, MaxKeys: 256})
	key := []byte("a")
	for i, want := range []time.Duration{0, 0, time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond} {
		if wait, ok := rate.Acquire(0, key); !ok || wait != want {
			t.Errorf("request %d: waits %v, %v, want %v", i, wait, ok, want)
		}
	}
	if wait, ok := rate.Acquire(0, key); ok || wait != time.Millisecond {
		t.Errorf("above the delay: %v, %v, want to be rejected for 1ms", wait, ok)
	}
	if left, wait, whole := rate.Peek(0, key); left != 0 || wait != time.Millisecond || whole != 5*time.Millisecond {
		t.Errorf("a look: %d left, in %v, whole in %v", left, wait, whole)
	}
	if wait, ok := rate.Acquire(ms, key); !ok || wait != 3*time.Millisecond {
		t.Errorf("a millisecond later: %v, %v", wait, ok)
	}
	if wait, ok := rate.Acquire(0, []byte("b")); !ok || wait != 0 {
		t.Errorf("another key: %v, %v", wait, ok)
	}
}

func TestRate_ADelayThatIsTakenAwayLeavesNoDebtBeyondTheBurst(t *testing.T) {
	now := int64(0)
	all := NewRateLimiters(func() int64 { return now })
	spec := RateSpec{Name: "r", PerSecond: 1000, Burst: 1, MaxDelay: 5 * time.Millisecond, MaxKeys: 256}
	rates := all.Prepare([]RateSpec{spec})
	all.Use(rates)
	for range 6 {
		rates[0].Acquire(now, []byte("a"))
	}
	spec.MaxDelay = 0
	all.Use(all.Prepare([]RateSpec{spec}))
	if wait, ok := all.Named("r").Acquire(now, []byte("a")); ok || wait != time.Millisecond {
		t.Errorf("rejected for %v, %v, want 1ms", wait, ok)
	}
}
