package limiter

import (
	"strconv"
	"testing"
	"time"
)

// What it costs to divide the caps, and to have them grow.
func BenchmarkWindowsShared(b *testing.B) {
	for _, c := range []struct {
		name string
		caps Caps
		of   int
	}{
		{"rejected, one of 3", Caps{PerSKU: 20, All: 200}, 3},
		{"admitted, one of 3", Caps{PerSKU: maxSKUBooked, All: maxBooked}, 3},
		{"rejected, warming", Caps{PerSKU: 20, All: 200, WarmUp: 10 * time.Minute}, 1},
		{"rejected, warming, one of 3", Caps{PerSKU: 20, All: 200, WarmUp: 10 * time.Minute}, 3},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := NewWindowLimiter(tenMs(1), c.caps)
			w.SetShare(Share{Of: c.of})
			skus := make([][]byte, 64)
			for i := range skus {
				skus[i] = strconv.AppendInt([]byte("SKU-"), int64(i), 10)
			}
			contend(b, func(now int64, i int) { w.Acquire(now, skus[i%len(skus)]) })
		})
	}
}
