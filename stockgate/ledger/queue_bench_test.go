package ledger

import (
	"fmt"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// BenchmarkQueueCPU prints what each step of an order costs Redis in CPU time of its whole process, network included,
// where the steps of 32 orders go together: a direct order is reserved and finished, one that waits is queued, taken
// and decided, and needs a place.
func BenchmarkQueueCPU(b *testing.B) {
	const together, rounds = 32, 200
	request := NewRequest(1_000_000, strings.Repeat("x", 300))
	answer := strings.Repeat("y", 150)
	for range b.N {
		server := redistest.Start(b)
		r := testkit.Must[*Store](b)(NewStore(optionsFor(server, 16)))
		testkit.Must[Stock](b)(r.SetTotal(b.Context(), testSKU, MaxNumber, 1))
		batch := func(name, request string, round int) (items []Item) {
			for i := range together {
				serial := fmt.Sprintf("%s-%04d-%02d", name, round, i)
				items = append(items, Item{Serial: serial, User: serial, Quantity: 1, Request: request})
			}
			return items
		}
		codes, done := make([]Code, together), make([]Done, together)
		var leased []Leased
		var tokens []string
		for _, step := range []struct {
			name string
			each func(round int) error
		}{
			{"reserve", func(round int) error {
				_, err := r.Reserve(b.Context(), testSKU, 0, 1, 1_700_000_000_000, batch("direct", "", round), codes)
				return err
			}},
			{"finish", func(round int) error {
				_, err := r.Finish(b.Context(), testSKU, 1, 2_000, Confirm, batch("direct", "", round), done)
				return err
			}},
			{"queue", func(round int) error {
				_, err := r.Reserve(b.Context(), testSKU, 0, 1, 1_700_000_000_000, batch("queued", request, round), codes)
				return err
			}},
			{"slots", func(round int) error {
				free := tokens
				tokens = nil
				for i := range together {
					tokens = append(tokens, fmt.Sprintf("KJNK7AVZ5M2YGGJUUYXCAFX3CU%d-%d", round, i))
				}
				_, err := r.Slots(b.Context(), SlotCall{Free: free, Want: tokens, Limit: 1000, For: 10_000})
				return err
			}},
			{"hand_out", func(int) error {
				taken, err := r.HandOut(b.Context(), testSKU, HandOutCall{Now: 1, Orders: together, Limit: 100_000,
					Timeout: 5_000, Slowest: 5_000, AskFor: 1})
				leased = append(leased, taken.Orders...)
				return err
			}},
			{"decide", func(round int) error {
				var all []Decision
				for _, o := range leased[together*round : together*(round+1)] {
					all = append(all, Decision{Serial: o.Serial, Move: MoveConfirm, Lease: o.Lease, Answer: answer})
				}
				_, _, err := r.Decide(b.Context(), testSKU, DecideCall{Now: 1, Keep: 2_000, AnswerFor: 900_000,
					Decisions: all})
				return err
			}},
		} {
			before := server.CPU()
			for round := range rounds {
				testkit.Check(b, step.each(round))
			}
			b.ReportMetric((server.CPU()-before)*1e6/(together*rounds), step.name+"-µs/order")
		}
		stock := stockIn(b, r)
		testkit.Want(b, "sold", stock.Sold, 2*together*rounds)
		r.Close()
	}
}
