package stockgate

import (
	"fmt"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/layout"
)

// What one refresh costs against a real Redis on loopback, by the number of SKUs.
func BenchmarkRead(b *testing.B) {
	server := redistest.Start(b)
	for layoutName, o := range layouts() {
		s := dial(b, server, o)
		for _, n := range []int{1, 10, readAtOnce} {
			b.Run(fmt.Sprintf("%s/%d", layoutName, n), func(b *testing.B) {
				skus := make([]string, n)
				for i := range skus {
					skus[i] = layoutName + string(name(i))
					check(b, s.Set(b.Context(), skus[i], 5))
				}
				out := make([]layout.Reading, n)
				b.ReportAllocs()
				for b.Loop() {
					check(b, s.Read(b.Context(), skus, out))
				}
			})
		}
	}
}
