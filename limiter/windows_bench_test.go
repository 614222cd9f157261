package limiter

import (
	"strconv"
	"testing"
)

// The clock of these benchmarks moves by 500 ns a decision, so that a 10 ms window sees 20000 requests on each core:
// 2 million a second.
const step = 500

func BenchmarkWindow(b *testing.B) {
	for _, most := range []int{20, 1 << 20} {
		b.Run("max="+strconv.Itoa(most), func(b *testing.B) {
			w := NewWindow(tenMs(1), most)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for now := int64(0); pb.Next(); now += step {
					w.Take(now)
				}
			})
		})
	}
}

func BenchmarkWindows(b *testing.B) {
	for _, c := range []struct {
		name string
		caps Caps
		skus int
	}{
		{"refused by the SKU", Caps{PerSKU: 20}, 1},
		{"refused by all", Caps{PerSKU: 20, All: 20}, 64},
		{"admitted", Caps{PerSKU: 1 << 16}, 1},
		{"admitted by both", Caps{PerSKU: 1 << 16, All: 1 << 20}, 1},
		{"100000 SKUs", Caps{PerSKU: 20}, 100_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := NewWindows(tenMs(1), c.caps)
			skus := make([][]byte, c.skus)
			for i := range skus {
				skus[i] = strconv.AppendInt([]byte("SKU-"), int64(i), 10)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					w.Take(int64(i)*step, skus[i%len(skus)])
				}
			})
		})
	}
}
