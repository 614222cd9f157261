package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// BenchmarkScripts prints what a call of the queue's scripts and of the rare ones takes inside Redis: the median of 100
// calls, which a busy machine hardly moves. docs/redis.md has the figures. One run is enough: -benchtime 1x.
func BenchmarkScripts(b *testing.B) {
	for _, orders := range []int{1, 64} {
		b.Run(fmt.Sprintf("queue-%d", orders), func(b *testing.B) { queueScripts(b, orders) })
	}
	b.Run("rare", rareScripts)
}

const callsEach = 100

// median runs call callsEach times and reports the median of what Redis says that its scripts took.
func median(b *testing.B, server *redistest.Server, name string, call func(i int) error) {
	var took []int64
	for i := range callsEach {
		before := spent(b, server)
		testkit.Check(b, call(i))
		took = append(took, spent(b, server)-before)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), name+"-µs/call")
}

// queueScripts measures the steps of orders that wait, n in a call.
func queueScripts(b *testing.B, n int) {
	server, ctx := redistest.Start(b), context.Background()
	r := testkit.Must[*Store](b)(NewStore(optionsFor(server, 4)))
	defer r.Close()
	testkit.Must[Stock](b)(r.SetTotal(ctx, testSKU, MaxNumber, 1))
	request, answer := NewRequest(1_000_000, strings.Repeat("x", 300)), strings.Repeat("y", 150)
	serial := func(i, k int) string { return fmt.Sprintf("order-%04d-%02d", i, k) }
	median(b, server, "reserve", func(i int) error {
		items := make([]Item, n)
		for k := range items {
			items[k] = Item{Serial: serial(i, k), User: serial(i, k), Quantity: 1, Request: request}
		}
		_, err := r.Reserve(ctx, testSKU, 0, 1, 1_700_000_000_000, items, make([]Code, n))
		return err
	})
	median(b, server, "positions", func(i int) error {
		serials := make([]string, n)
		for k := range serials {
			serials[k] = serial(i, k)
		}
		_, err := r.Positions(ctx, testSKU, serials)
		return err
	})
	var tokens []string
	median(b, server, "slots", func(i int) error {
		free := tokens
		tokens = nil
		for k := range n {
			tokens = append(tokens, "KJNK7AVZ5M2YGGJUUYXCAFX3CU"+serial(i, k))
		}
		_, err := r.Slots(ctx, SlotCall{Free: free, Want: tokens, Limit: 1000, For: 10_000})
		return err
	})
	var leased []Leased
	median(b, server, "hand_out", func(int) error {
		out, err := r.HandOut(ctx, testSKU, HandOutCall{Now: 1, Orders: n, Limit: 100_000,
			Timeout: 5_000, Slowest: 5_000, AskFor: 1})
		leased = append(leased, out.Orders...)
		return err
	})
	median(b, server, "decide", func(i int) error {
		var all []Decision
		for _, o := range leased[n*i : n*(i+1)] {
			all = append(all, Decision{Serial: o.Serial, Move: MoveConfirm, Lease: o.Lease, Answer: answer})
		}
		_, _, err := r.Decide(ctx, testSKU,
			DecideCall{Now: 1, Keep: 2_000, AnswerFor: 900_000, Decisions: all})
		return err
	})
	testkit.Want(b, "sold", stockIn(b, r).Sold, int64(n*callsEach))
}

// rareScripts measures what operators, schedules and the settlement call.
func rareScripts(b *testing.B) {
	server, ctx := redistest.Start(b), context.Background()
	r := testkit.Must[*Store](b)(NewStore(optionsFor(server, 4)))
	defer r.Close()
	sku := func(i int) string { return fmt.Sprintf("sku-%03d", i) }
	states := []State{Paused, On}
	testkit.Must[Stock](b)(r.SetTotal(ctx, "first", 1, 1)) // Redis has counted one call
	ended := make([]Stock, callsEach)
	for i := range ended {
		testkit.Must[Stock](b)(r.SetTotal(ctx, fmt.Sprint("ended-", i), 1, 1))
		ended[i] = testkit.Must[Stock](b)(r.SetState(ctx, fmt.Sprint("ended-", i), Ended))
	}
	for _, one := range []struct {
		name string
		call func(i int) error
	}{
		{"create", func(i int) error {
			_, _, err := r.Create(ctx, sku(i), Opening{Total: 1_000_000, Limit: 1})
			return err
		}},
		{"set_total", func(i int) error { _, err := r.SetTotal(ctx, sku(0), int64(2_000_000+i), 1); return err }},
		{"set_state", func(i int) error { _, err := r.SetState(ctx, sku(0), states[i%2]); return err }},
		{"set_schedule", func(i int) error { _, err := r.SetSchedule(ctx, sku(0), int64(i+1), 1<<40); return err }},
		{"add", func(i int) error { _, err := r.Add(ctx, sku(0), 1, fmt.Sprint("id-", i)); return err }},
		{"audit", func(int) error { return r.InspectAll(ctx, []string{sku(0)})[0].Err }},
		{"read_stock", func(int) error { _, _, err := r.ReadStock(ctx, sku(0)); return err }},
		{"overrule", func(i int) error {
			_, _, _, err := r.Overrule(ctx, sku(1), Paused, int64(i+1))
			return err
		}},
		{"recreate", func(i int) error { _, err := r.Recreate(ctx, fmt.Sprint("new-", i), 1, 1, true); return err }},
		{"archive", func(i int) error {
			return r.Archive(ctx, fmt.Sprint("ended-", i), ended[i].Epoch, ended[i].Ver)
		}},
		{"acknowledge", func(int) error { _, err := r.Acknowledge(ctx, sku(0), "1-1"); return err }},
	} {
		median(b, server, one.name, one.call)
	}
}
