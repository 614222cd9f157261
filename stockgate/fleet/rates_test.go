package fleet

import (
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/limiter"
)

// rateOf is a rate of 100/s with a burst of 20 that so many instances share.
func rateOf(instances int, perSecond float64) *limiter.RateLimiter {
	r := limiter.NewRateLimiter(limiter.RateSpec{Name: "r", PerSecond: perSecond, Burst: 20, MaxKeys: 1 << 10, Fleet: true})
	r.Fleet().SetInstances(instances)
	return r
}

func sharedRate(instances int) *limiter.FleetShare { return rateOf(instances, 100).Fleet() }

// admits is how many of n requests of a key an instance admits.
func admits(r *limiter.RateLimiter, now int64, n int) (admitted int) {
	for range n {
		if _, ok := r.Acquire(now, []byte("k")); ok {
			admitted++
		}
	}
	return admitted
}

// One instance has used the whole of a key's burst: another one learns it with its next count, and earns no more than
// the fleet does. What was reset is whole again.
func TestRates_UseOfOneInstanceCountsAtAll(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var all []*told
	var rates []*limiter.RateLimiter // so slow that Redis' clock, which the test does not hold, gives nothing back
	for _, name := range []string{"a", "b"} {
		one, r := instanceOf(t, server.Addr, name, "secret"), rateOf(2, 0.01)
		one.UseRates(map[string]*limiter.FleetShare{"r": r.Fleet()})
		all, rates = append(all, one), append(rates, r)
	}
	now := int64(time.Hour)
	for _, one := range all {
		one.options.Now = func() int64 { return now }
	}
	if n := admits(rates[0], now, 40); n != 10 {
		t.Fatalf("%d admitted before the first count, want the half of 20", n)
	}
	all[0].countOnce(t.Context())
	if n := admits(rates[0], now, 40); n < 10 {
		t.Fatalf("%d more after it, want the other half", n)
	}
	all[0].countOnce(t.Context())
	admits(rates[1], now, 40) // its part, of which it knows
	all[1].countOnce(t.Context())
	if n := admits(rates[1], now, 40); n != 0 {
		t.Errorf("%d admitted by the other, although the fleet has used 30 of 20", n)
	}
	rates[0].Reset([]byte("k"))
	all[0].countOnce(t.Context())
	if n := admits(rates[0], now, 40); n != 20 {
		t.Errorf("%d admitted after the reset, want 20", n)
	}
	keys := server.Client.Keys(t.Context(), "sluice:shop:fleet:{shop}:rate:*").Val()
	if len(keys) > 1 {
		t.Errorf("keys %q, want one", keys)
	}
}

// Counts expire when their keys are whole, and what a clock that ran ahead has written does not reject for longer than
// a key can owe.
func TestRates_CountsExpireAndAreBounded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	one, r := instanceOf(t, server.Addr, "a", ""), rateOf(1, 100)
	one.UseRates(map[string]*limiter.FleetShare{"r": r.Fleet()})
	now := int64(time.Hour)
	one.options.Now = func() int64 { return now }
	admits(r, now, 40)
	one.countOnce(t.Context())
	keys := server.Client.Keys(t.Context(), "sluice:shop:fleet:{shop}:rate:*").Val()
	if len(keys) != 1 {
		t.Fatalf("keys %q, want one", keys)
	}
	if left := server.Client.PTTL(t.Context(), keys[0]).Val(); left <= 0 || left > time.Second {
		t.Errorf("it expires in %v, want 0.2s at most", left)
	}
	ahead := server.Client.Time(t.Context()).Val().Add(24 * time.Hour).UnixMicro()
	server.Client.Set(t.Context(), keys[0], ahead, 0)
	admits(r, now, 1) // asks for it
	one.countOnce(t.Context())
	if _, wait, _ := r.Peek(now, []byte("k")); wait > 10*time.Second {
		t.Errorf("rejected for %v by a count of tomorrow", wait)
	}
}

// With Redis away a key has its part, of which it has used what it had used of the whole.
func TestRates_WithoutRedisEachHasItsPart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	one, r := instanceOf(t, server.Addr, "a", ""), rateOf(4, 100)
	one.UseRates(map[string]*limiter.FleetShare{"r": r.Fleet()})
	now := int64(time.Hour)
	one.options.Now = func() int64 { return now }
	admits(r, now, 40)
	one.countOnce(t.Context())
	if n := admits(r, now, 40); n < 14 {
		t.Fatalf("%d more of the 15 that are left", n)
	}
	server.Kill()
	one.countOnce(t.Context())
	if n := admits(r, now, 40); n != 0 {
		t.Errorf("%d admitted again since Redis is away", n)
	}
	if now += int64(time.Second); r.Fleet().Shared() != 0 || admits(r, now, 100) != 5 {
		t.Error("a second later it has another part than a quarter of the burst")
	}
}
