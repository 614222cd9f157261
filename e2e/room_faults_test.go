package e2e

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// Ten times as many people are called as there are units. The limits behind the room, and the ledger, still stand.
func TestRoom_TooManyWhoAreCalledBuyNoMoreThanThereIs(t *testing.T) {
	t.Parallel()
	begins := time.Now().Add(30 * time.Minute)
	gates, _ := roomGates(t, 1, begins, "overshoot = 10.0")
	g := gates[0]
	soon(t, "the room is open", func() bool { d, _ := g.room(t); return d.Phase == "pre_queue" })
	people := crowdJoins(t, gates, 120)
	beginsAt(t, gates, begins, time.Now().Add(300*time.Millisecond))
	soon(t, "people are called", func() bool { d, _ := g.room(t); return d.Serving == 100 })
	var bought, others atomic.Int64
	var claims, all sync.WaitGroup
	for _, p := range people[:100] {
		claims.Go(func() { p.claims(t, g) })
	}
	claims.Wait() // when all is sold the room has no more passes
	for _, p := range people[:100] {
		all.Go(func() {
			switch status, reason := p.order(t, g); {
			case status == 200:
				bought.Add(1)
			case reason == "sold_out", reason == "undecided": // the others' orders
				others.Add(1)
			default:
				t.Errorf("%d %s", status, reason)
			}
		})
	}
	all.Wait()
	if bought.Load() != 10 || others.Load() != 90 {
		t.Errorf("%d have bought, %d have not", bought.Load(), others.Load())
	}
	soon(t, "the report tells it", func() bool {
		return strings.Contains(ok(t, "room", "report", "rush", "--admin", g.admin),
			"people 100 were called, 100 claimed a pass and 10 placed an order")
	})
}

// Of a ledger that is gone it is not known what is left: those who wait are not told that all is over.
func TestRoom_LedgerThatIsGoneEndsNoRoom(t *testing.T) {
	t.Parallel()
	begins, r := time.Now().Add(30*time.Minute), redistest.Start(t)
	gates, _ := roomGatesOn(t, r, 1, begins, "")
	g := gates[0]
	opened(t, gates)
	people := crowdJoins(t, gates, 20)
	beginsAt(t, gates, begins, time.Now().Add(300*time.Millisecond))
	soon(t, "people are called", func() bool { d, _ := g.room(t); return d.Serving > 0 })
	people[0].claims(t, g)
	keys := r.Client.Keys(t.Context(), "*1001*").Val()
	if err := r.Client.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	soon(t, "its loss is noticed", func() bool {
		if status, _ := people[0].order(t, g); status == 200 {
			t.Errorf("an order of a ledger that is gone was placed; these keys went: %q", keys)
		}
		return strings.Contains(run(t, "", "stock", "list", "--admin", g.admin).out, "gone")
	})
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // it polls
		if s, _ := people[19].ask(t, g, "GET", "/me"); s.Phase == "over" {
			t.Fatal("the room is over")
		}
	}
}
