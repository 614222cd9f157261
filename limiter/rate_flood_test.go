package limiter

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// rateFlood has so many keys, each new, ask once, evenly over the time; between them a client that keeps to half of the
// rate, and one that asks for ten times of it.
type rateFlood struct {
	rate                     *RateLimiter
	random                   *rand.Rand
	key, honestKey, greedKey []byte
	now                      int64

	nextHonest, nextGreedy   int64
	honest, honestOf, greedy int // requests admitted, requests, requests admitted
}

func newRateFlood(rate *RateLimiter) *rateFlood {
	return &rateFlood{rate: rate, random: rand.New(rand.NewPCG(1, 2)), key: make([]byte, 16),
		honestKey: []byte("honest"), greedKey: []byte("greedy")}
}

func (f *rateFlood) run(keys int, over time.Duration) {
	pause := int64(over) / int64(keys)
	for end := f.now + int64(over); f.now < end; f.now += pause {
		binary.NativeEndian.PutUint64(f.key, f.random.Uint64())
		f.rate.Acquire(f.now, f.key)
		if f.now >= f.nextHonest {
			f.nextHonest += 2 * f.rate.perToken
			f.honestOf++
			if _, ok := f.rate.Acquire(f.now, f.honestKey); ok {
				f.honest++
			}
		}
		if f.now >= f.nextGreedy {
			f.nextGreedy += f.rate.perToken / 10
			if _, ok := f.rate.Acquire(f.now, f.greedKey); ok {
				f.greedy++
			}
		}
	}
}

// No key is evicted, nothing grows, and few keys suffer for others.
func TestRateLimiter_FloodOfKeysIsNeitherAmnestyNorDenial(t *testing.T) { floodsOfKeys(t, 20) }

func TestRateLimiter_FloodOfMillionsIsNeitherAmnestyNorDenial(t *testing.T) {
	testkit.Nightly(t, "six million keys take seconds")
	floodsOfKeys(t, 1)
}

// floodsOfKeys has floods of millions of keys, or of a part of them in a table that is as much smaller.
func floodsOfKeys(t *testing.T, part int) {
	const over = 5 * time.Second // once before allocations are counted, and once while they are
	for _, c := range []struct {
		keys int
		spec RateSpec
	}{
		{1_000_000, RateSpec{PerSecond: 20, Burst: 40, MaxKeys: 1_000_000}}, // 10,000 keys under way
		{250_000, RateSpec{PerSecond: 2, Burst: 2, MaxKeys: 500_000}},       // 25,000
		{250_000, RateSpec{PerSecond: 20, Burst: 1, MaxKeys: 1_000_000}},    // 2,500, of which each has nothing left
	} {
		spec := c.spec
		spec.MaxKeys /= part
		f := newRateFlood(NewRateLimiter(spec))
		if n := testing.AllocsPerRun(1, func() { f.run(c.keys/part, over) }); n != 0 {
			t.Errorf("%+v: %v allocations", spec, n)
		}
		if f.honestOf == 0 || float64(f.honest) < 0.99*float64(f.honestOf) {
			t.Errorf("%+v: %d of %d requests of a client that keeps to the rate were admitted", spec, f.honest, f.honestOf)
		}
		most := int(spec.PerSecond*(2*over).Seconds()) + spec.Burst
		if f.greedy > most || f.greedy < most*98/100-1 {
			t.Errorf("%+v: %d requests of a client that exceeds the rate were admitted; it has %d", spec, f.greedy, most)
		}
	}
}
