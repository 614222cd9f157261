package redisstore

import (
	"context"
	"fmt"
	"testing"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// BenchmarkAudit prints what a page costs inside Redis.
func BenchmarkAudit(b *testing.B) {
	for _, most := range []int{0, protocol.PageSize} {
		b.Run(fmt.Sprint(most), func(b *testing.B) {
			server, r := onRedis(b)
			ledgertest.FillUp(b, r, 90) // 90 records, 90 users, some 60 times
			measure(b, server, 1, func() {
				_, err := r.Inspect(context.Background(), "1001", protocol.AllParts, protocol.FirstPage, most)
				ledgertest.Check(b, err)
			})
		})
	}
	for _, p := range []protocol.Part{protocol.PartRecords, protocol.PartUsers, protocol.PartDue} {
		b.Run(string(p), func(b *testing.B) {
			server, r := onRedis(b)
			ledgertest.FillUp(b, r, 2_000)
			measure(b, server, 1, func() {
				_, err := r.Inspect(context.Background(), "1001", p, protocol.FirstPage, protocol.PageSize)
				ledgertest.Check(b, err)
			})
		})
	}
}
