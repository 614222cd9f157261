package ledger

import (
	"context"
	"fmt"
	"testing"

	"sluice/internal/testkit"
)

// BenchmarkAudit prints what a page costs inside Redis.
func BenchmarkAudit(b *testing.B) {
	for _, most := range []int{0, pageSize} {
		b.Run(fmt.Sprint(most), func(b *testing.B) {
			server, r := onRedis(b)
			fillUp(b, r, 90) // 90 records, 90 users, some 60 times
			measure(b, server, 1, func() {
				_, err := r.Inspect(context.Background(), "1001", allParts, firstPage, most)
				testkit.Check(b, err)
			})
		})
	}
	for _, p := range []Part{partRecords, partUsers, partDue} {
		b.Run(string(p), func(b *testing.B) {
			server, r := onRedis(b)
			fillUp(b, r, 2_000)
			measure(b, server, 1, func() {
				_, err := r.Inspect(context.Background(), "1001", p, firstPage, pageSize)
				testkit.Check(b, err)
			})
		})
	}
}
