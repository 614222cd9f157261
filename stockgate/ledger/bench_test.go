package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// BenchmarkReserve and BenchmarkFinish print the time of a call, and what it costs inside Redis for each order, which
// is the scarce part: Redis has one thread.
func BenchmarkReserve(b *testing.B) {
	for _, who := range []string{"winners", "losers"} {
		for _, n := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("%s/%d", who, n), func(b *testing.B) {
				server := redistest.Start(b)
				r := connect(b, server, texts())
				total := int64(MaxNumber)
				if who == "losers" {
					total = 1
				}
				testkit.Must[Stock](b)(r.SetTotal(context.Background(), "1001", total, 0))
				if who == "losers" {
					takeUnit(b, r, "the only winner", "ann")
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
	for _, op := range []Op{Confirm, Release} {
		for _, n := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", op, n), func(b *testing.B) {
				server := redistest.Start(b)
				r := connect(b, server, texts())
				testkit.Must[Stock](b)(r.SetTotal(context.Background(), "1001", MaxNumber, 0))
				count := 0
				for range b.N {
					reserve(b, r, orders(n, &count))
				}
				count = 0
				done := make([]Done, n)
				measure(b, server, n, func() {
					_, err := r.Finish(context.Background(), "1001", 1, 2_000, op, orders(n, &count), done)
					testkit.Check(b, err)
				})
				testkit.Want(b, "done", done[n-1], Changed)
			})
		}
	}
}

// orders are n orders of users and serials that nobody used before.
func orders(n int, count *int) []Item {
	items := make([]Item, n)
	for i := range items {
		*count++
		items[i] = Item{
			Serial:   "01JD2M4Y6QK8ZW5T3R7V9X" + strconv.Itoa(*count),
			User:     "user-" + strconv.Itoa(*count),
			Quantity: 1,
		}
	}
	return items
}

func reserve(b *testing.B, r *Store, items []Item) {
	_, err := r.Reserve(context.Background(), "1001", 0, 1, 1_700_000_000_000, items, make([]Code, len(items)))
	testkit.Check(b, err)
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
	testkit.Check(b, err)
	_, after, _ := strings.Cut(text, "cmdstat_evalsha:")
	_, after, _ = strings.Cut(after, "usec=")
	number, _, _ := strings.Cut(after, ",")
	usec, err := strconv.ParseInt(number, 10, 64)
	testkit.Check(b, err)
	return usec
}
