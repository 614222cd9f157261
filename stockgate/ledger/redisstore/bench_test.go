package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// BenchmarkReserve and BenchmarkFinish print the time of a call, and what it costs inside Redis for each order, which
// is the scarce part: Redis has one thread.
func BenchmarkReserve(b *testing.B) {
	for _, who := range []string{"winners", "losers"} {
		for _, n := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("%s/%d", who, n), func(b *testing.B) {
				server := redistest.Start(b)
				r := connect(b, server, texts())
				total := int64(protocol.MaxNumber)
				if who == "losers" {
					total = 1
				}
				ledgertest.Must[protocol.Stock](b)(r.SetTotal(context.Background(), "1001", total, 0))
				if who == "losers" {
					ledgertest.Take(b, r, "the only winner", "ann")
				}
				count := 0
				measure(b, server, n, func() {
					reserve(b, r, orders(n, &count))
				})
			})
		}
	}
}

func BenchmarkFinish(b *testing.B) {
	for _, op := range []protocol.Op{protocol.Confirm, protocol.Release} {
		for _, n := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", op, n), func(b *testing.B) {
				server := redistest.Start(b)
				r := connect(b, server, texts())
				ledgertest.Must[protocol.Stock](b)(r.SetTotal(context.Background(), "1001", protocol.MaxNumber, 0))
				count := 0
				for range b.N {
					reserve(b, r, orders(n, &count))
				}
				count = 0
				done := make([]protocol.Done, n)
				measure(b, server, n, func() {
					_, err := r.Finish(context.Background(), "1001", 1, 2_000, op, orders(n, &count), done)
					ledgertest.Check(b, err)
				})
				ledgertest.Want(b, "done", done[n-1], protocol.Changed)
			})
		}
	}
}

// orders are n orders of users and serials that nobody used before.
func orders(n int, count *int) []protocol.Item {
	items := make([]protocol.Item, n)
	for i := range items {
		*count++
		items[i] = protocol.Item{
			Serial:   "01JD2M4Y6QK8ZW5T3R7V9X" + strconv.Itoa(*count),
			User:     "user-" + strconv.Itoa(*count),
			Quantity: 1,
		}
	}
	return items
}

func reserve(b *testing.B, r *Store, items []protocol.Item) {
	_, err := r.Reserve(context.Background(), "1001", 0, 1, 1_700_000_000_000, items, make([]protocol.Code, len(items)))
	ledgertest.Check(b, err)
}

// measure runs call b.N times, each with n orders.
func measure(b *testing.B, server *redistest.Server, n int, call func()) {
	before := spent(b, server)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		call()
	}
	b.StopTimer()
	inside := float64(spent(b, server)-before) / float64(b.N)
	b.ReportMetric(inside, "redis-µs/call")
	b.ReportMetric(inside/float64(n), "redis-µs/order")
}

// spent is how many microseconds Redis has run scripts for.
func spent(b *testing.B, server *redistest.Server) int64 {
	text, err := server.Client.Info(context.Background(), "commandstats").Result()
	ledgertest.Check(b, err)
	_, after, _ := strings.Cut(text, "cmdstat_evalsha:")
	_, after, _ = strings.Cut(after, "usec=")
	number, _, _ := strings.Cut(after, ",")
	usec, err := strconv.ParseInt(number, 10, 64)
	ledgertest.Check(b, err)
	return usec
}
