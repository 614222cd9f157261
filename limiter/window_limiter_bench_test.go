package limiter

import (
	"strconv"
	"testing"
	"time"
)

// contend runs take on every core, on one clock that runs a hundred times as fast as the real one: a window of 10 ms
// sees as many decisions as fit into 100 us. The clock is read once in 16 decisions, so that it is not what is
// measured.
func contend(b *testing.B, take func(now int64, i int)) {
	b.ReportAllocs()
	start := time.Now()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		now := int64(0)
		for i := 0; pb.Next(); i++ {
			if i%16 == 0 {
				now = int64(time.Since(start)) * 100
			}
			take(now, i)
		}
	})
}

func BenchmarkWindow(b *testing.B) {
	for _, c := range []struct {
		name string
		max  int
	}{{"rejected", 20}, {"admitted", maxBooked}} {
		b.Run(c.name, func(b *testing.B) {
			w := newOfAll(tenMs(1), c.max)
			contend(b, func(now int64, _ int) { w.Acquire(now) })
		})
	}
}

func BenchmarkWindows(b *testing.B) {
	for _, c := range []struct {
		name string
		caps Caps
		skus int
	}{
		{"rejected by the SKU", Caps{PerSKU: 20}, 1},
		{"rejected by all", Caps{PerSKU: 20, All: 20}, 64},
		{"admitted", Caps{PerSKU: maxSKUBooked}, 1},
		{"admitted by both", Caps{PerSKU: maxSKUBooked, All: maxBooked}, 1},
		{"100000 SKUs", Caps{PerSKU: 20}, 100_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := NewWindowLimiter(tenMs(1), c.caps)
			skus := make([][]byte, c.skus)
			for i := range skus {
				skus[i] = strconv.AppendInt([]byte("SKU-"), int64(i), 10)
			}
			contend(b, func(now int64, i int) { w.Acquire(now, skus[i%len(skus)]) })
		})
	}
}
