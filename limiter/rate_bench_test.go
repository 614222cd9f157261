package limiter

import (
	"encoding/binary"
	"testing"
)

func BenchmarkRate(b *testing.B) {
	const keys = 1 << 20
	for _, c := range []struct {
		name  string
		keys  uint64
		burst int
	}{{"1M keys", keys, 1 << 30}, {"1M key rejected", keys, 1}, {"one key", 1, 1 << 30}, {"one key rejected", 1, 1}} {
		b.Run(c.name, func(b *testing.B) {
			rate := NewRateLimiter(RateSpec{PerSecond: 0.001, Burst: c.burst, MaxKeys: 1_000_000})
			key := make([]byte, 16)
			for i := range c.keys {
				binary.NativeEndian.PutUint64(key, i)
				rate.Acquire(0, key)
			}
			contend(b, func(now int64, i int) {
				var key [16]byte
				binary.NativeEndian.PutUint64(key[:], uint64(i)*0x9e3779b97f4a7c15%c.keys)
				rate.Acquire(now, key[:])
			})
		})
	}
}
