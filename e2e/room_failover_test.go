package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// Redis fails over in the middle of a sale, and then a gate is killed. No person loses a place: who is called stays
// called, who joins meanwhile is behind those who joined before, and who waits at the gate that is gone goes on at the
// other.
func TestRoom_FailOverAndAKilledGateCostNoPlace(t *testing.T) {
	testkit.Nightly(t, "it waits for sentinels")
	t.Parallel()
	w, begins := redistest.Sentinel(t), time.Now().Add(30*time.Minute)
	gates, _ := roomGatesBy(t, "stock.source = \"redis\"\nstock.redis.addresses = "+quoted(w.Addrs()...)+
		"\nstock.redis.master_name = "+strconv.Quote(w.Name), 2, begins, "")
	opened(t, gates)
	people := crowdJoins(t, gates, 40)
	beginsAt(t, gates, begins, time.Now().Add(500*time.Millisecond))
	for _, g := range gates {
		soon(t, "people are called", func() bool { d, _ := g.room(t); return d.Serving == 13 })
	}

	old := w.Master()
	old.Kill()
	late := joinSomehow(t, gates, 20)
	for _, p := range people[:5] { // perhaps while Redis is away
		if s, status := p.claims(t, gates[0]); status != 200 || s.Pass == "" {
			t.Errorf("number %d claims a pass: %d %+v", p.number, status, s)
		}
	}
	next := w.Successor(old)
	late.Wait()
	for _, p := range late.people {
		if p.number <= 40 {
			t.Errorf("%s has joined later, and has number %d", p.user, p.number)
		}
	}
	for i, p := range people {
		want := "waiting"
		if i < 13 {
			want = "called"
		}
		s, _ := p.ask(t, gates[i%2], "GET", "/me")
		if s.Number != int64(i+1) || s.State != want && s.State != "passed" {
			t.Errorf("number %d is %+v", i+1, s)
		}
	}

	buys := func(p *person) {
		soon(t, fmt.Sprint("number ", p.number, " buys"), func() bool {
			p.ask(t, gates[1], "POST", "/pass")
			status, _ := p.order(t, gates[1])
			return status == 200
		})
	}
	buys(people[0]) // the ledger has been repaired

	// The last one waits at the gate that is killed, and then at the other.
	last := people[39]
	waits := make(chan roomPlace, 1)
	go func() {
		at, s := gates[0], roomPlace{}
		for end := time.Now().Add(3 * long); s.Phase != "over" && time.Now().Before(end); {
			if s = last.awaitsNews(at); s.Phase == "" {
				at = gates[1]
			}
		}
		waits <- s
	}()
	soon(t, "the last one is parked", func() bool { return gates[0].metric("sluice_room_parked", "room", "rush") == 1 })
	gates[0].die()
	for _, p := range people[1:10] {
		buys(p)
	}
	if s := <-waits; s.State != "waiting" || s.Number != last.number {
		t.Errorf("the last one has heard %+v", s)
	}
	soon(t, "all units are sold", func() bool { return ledgerOf(t, next, "1001") == account{total: 10, sold: 10} })
}

// joiners are people who join until they have a ticket.
type joiners struct {
	sync.WaitGroup
	people []*person
}

func joinSomehow(t *testing.T, gates []*running, n int) *joiners {
	t.Helper()
	j := &joiners{}
	for i := range n {
		p := &person{user: fmt.Sprint("late", i)}
		j.people = append(j.people, p)
		j.Go(func() {
			for end := time.Now().Add(2 * long); p.ticket == "" && time.Now().Before(end); {
				p.ask(t, gates[i%len(gates)], "POST", "/join")
				time.Sleep(50 * time.Millisecond) // between two tries
			}
		})
	}
	return j
}

// awaitsNews waits for news once; there may be no answer.
func (p *person) awaitsNews(g *running) (s roomPlace) {
	req, err := http.NewRequest("GET", "http://"+g.front+"/.sluice/room/rush/me", nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Cookie", "uid="+p.user+"; sluice_room="+p.ticket)
	req.Header.Set("Prefer", "wait=20")
	resp, err := g.client.Do(req)
	if err != nil {
		return s
	}
	defer resp.Body.Close()
	_ = json.NewDecoder(resp.Body).Decode(&s)
	return s
}
