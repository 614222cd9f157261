package limiter

import (
	"net/netip"
	"testing"
	"time"
)

func BenchmarkPlaces(b *testing.B) {
	b.Run("room", func(b *testing.B) {
		p := NewConcurrencyLimiter(256, 512)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p.Acquire(false, 0, nil)
				p.Release()
			}
		})
	})
	b.Run("queue full", func(b *testing.B) {
		p := NewConcurrencyLimiter(1, 0)
		p.Acquire(false, 0, nil)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p.Acquire(false, 0, nil)
			}
		})
	})
	b.Run("handed over", func(b *testing.B) {
		p := NewConcurrencyLimiter(1, 512)
		b.ReportAllocs()
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p.Acquire(false, time.Minute, nil)
				p.Release()
			}
		})
	})
}

func BenchmarkConns(b *testing.B) {
	c, addr := NewConnLimiter(50_000, 200), netip.MustParseAddr("2001:db8::1")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Open(addr)
			c.Close(addr)
		}
	})
}

func BenchmarkConnRate(b *testing.B) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c, now := NewConnRate(50, 50), time.Unix(0, 0)
		for pb.Next() {
			now = now.Add(500)
			c.Allow(now)
		}
	})
}
