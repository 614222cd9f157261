package limiter

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// floodKeys has so many keys, each new, ask once, evenly over the time; between them a client that keeps to half of the
// rate, and one that asks for ten times of it. It returns how many of whose requests were admitted.
func floodKeys(rate *RateLimiter, keys int, over time.Duration) (honest, honestOf, greedy int) {
	random := rand.New(rand.NewPCG(1, 2))
	pause := int64(over) / int64(keys)
	var nextHonest, nextGreedy int64
	key := make([]byte, 16)
	for now := int64(0); now < int64(over); now += pause {
		binary.NativeEndian.PutUint64(key, random.Uint64())
		rate.Acquire(now, key)
		if now >= nextHonest {
			nextHonest += 2 * rate.perToken
			honestOf++
			if _, ok := rate.Acquire(now, []byte("honest")); ok {
				honest++
			}
		}
		if now >= nextGreedy {
			nextGreedy += rate.perToken / 10
			if _, ok := rate.Acquire(now, []byte("greedy")); ok {
				greedy++
			}
		}
	}
	return honest, honestOf, greedy
}

// Two million addresses in ten seconds: no key is evicted, nothing grows, and few keys suffer for others.
func TestRateFlood_FloodOfKeysIsNeitherAmnestyNorDenial(t *testing.T) {
	const over = 10 * time.Second
	for _, c := range []struct {
		keys int
		spec RateSpec
	}{
		{2_000_000, RateSpec{PerSecond: 20, Burst: 40, MaxKeys: 1_000_000}}, // 10,000 keys under way
		{500_000, RateSpec{PerSecond: 2, Burst: 2, MaxKeys: 500_000}},       // 25,000
		{500_000, RateSpec{PerSecond: 20, Burst: 1, MaxKeys: 1_000_000}},    // 2,500, of which each has nothing left
	} {
		rate, spec := NewRateLimiter(c.spec), c.spec
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		honest, honestOf, greedy := floodKeys(rate, c.keys, over)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > uint64(rate.bytes())/16 {
			t.Errorf("%+v: %d bytes were allocated beside the %d of the table", spec, grown, rate.bytes())
		}
		if honestOf == 0 || float64(honest) < 0.99*float64(honestOf) {
			t.Errorf("%+v: %d of %d requests of a client that keeps to the rate were admitted", spec, honest, honestOf)
		}
		if most := int(spec.PerSecond*over.Seconds()) + spec.Burst; greedy > most || greedy < most*98/100-1 {
			t.Errorf("%+v: %d requests of a client that exceeds the rate were admitted; it has %d", spec, greedy, most)
		}
	}
}
