package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// SLUICE_PARKED=5000 has so many clients wait; the log tells what that costs.
func TestRoom_AllWhoWaitForNewsHearTheEnd(t *testing.T) {
	t.Parallel()
	n := 200
	if text := os.Getenv("SLUICE_PARKED"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
	}
	begins := time.Now().Add(30 * time.Minute)
	gates, _ := roomGates(t, 1, begins)
	g := gates[0]
	soon(t, "the room is open", func() bool { d, _ := g.room(t); return d.Phase == "pre_queue" })
	people := crowdJoins(t, gates, n)
	beginsAt(t, gates, begins, time.Now().Add(300*time.Millisecond))
	soon(t, "people are called", func() bool { d, _ := g.room(t); return d.Serving > 0 })
	before := g.resident()
	var waits sync.WaitGroup
	for _, p := range people[20:] {
		waits.Go(func() {
			for {
				s, _ := p.ask(t, g, "GET", "/me", "Prefer", "wait=20") // less than the client's own time-out
				if s.Phase == "over" || s.Phase == "" {
					return
				}
			}
		})
	}
	parked := fmt.Sprintf("sluice_room_parked{room=\"rush\"} %d\n", n-20)
	soon(t, "all are parked", func() bool { return strings.Contains(g.scrape(), parked) })
	t.Logf("%d parked clients take %d KiB", n-20, g.resident()-before)
	for _, p := range people[:10] {
		p.ask(t, g, "POST", "/pass")
		if status, reason := p.order(t, g); status != 200 {
			t.Errorf("number %d orders: %d %s", p.number, status, reason)
		}
	}
	sold := time.Now()
	waits.Wait()
	t.Logf("all of them have heard the end after %v", time.Since(sold))
}

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
	var all sync.WaitGroup
	for _, p := range people[:100] {
		all.Go(func() {
			p.ask(t, g, "POST", "/pass")
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
