package room

import (
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// The room is made, and calls people, while Redis' clock is ten minutes ahead. Once it is right the room goes on at
// once: who comes has a ticket of this room, and is called for the units of those who do not come, or do not order.
func TestRoom_GoesOnAfterAClockThatRanAhead(t *testing.T) {
	t.Parallel()
	redis, turn := redistest.StartWithClock(t)
	turn(10 * time.Minute)
	s := open(t, redis, func(o *Options) { o.Rules.ClaimWithin = 2 * time.Second })
	holder, away := person{user: "holder"}, person{user: "away"}
	for _, p := range []*person{&holder, &away} {
		if m, _ := p.ask(t, s, true, "join", ""); m.State != IsWaiting {
			t.Fatalf("%s joins: %+v", p.user, m)
		}
	}
	if m, _ := holder.claims(t, s); m.State != hasPassed {
		t.Fatalf("who is called has %+v", m)
	}
	s.set(1, 0) // the pass is for it
	turn(0)
	for _, user := range []string{"a", "b"} {
		p := person{user: user}
		if m, a := p.ask(t, s, true, "join", ""); m.State != IsWaiting {
			t.Fatalf("%s joins: %+v, %d", user, m, a.Rejection)
		}
		if m, _ := p.claims(t, s); m.State != hasPassed {
			t.Errorf("%s: %+v", user, m)
		}
	}
}

// Two sales follow each other within the time by which Redis' clock ran ahead: a ticket of the first room is none of
// the second.
func TestStore_NextRoomAfterAClockThatRanAheadHasItsOwnTickets(t *testing.T) {
	t.Parallel()
	redis, turn := redistest.StartWithClock(t)
	turn(10 * time.Minute)
	now := time.Now().UnixMilli()
	first, second := Sale{Starts: now - 2000, Ends: now - 1000}, Sale{Starts: now, Ends: now + 3_600_000}
	s, rules := made(t, redis, first), Rules{Draw: true}
	turn(0)
	old := testkit.Must[number](t)(s.Join(t.Context(), 1))
	if !testkit.Must[bool](t)(s.Create(t.Context(), &rules, second, storeReading{})) {
		t.Fatal("no second room")
	}
	its := testkit.Must[number](t)(s.Join(t.Context(), 1))
	at := s.read(t, rules, second, nil, nil).State
	for what, c := range map[string]struct {
		number number
		want   bool
	}{"of the first room": {old, false}, "of the second room": {its, true}} {
		p := Place{Number: c.number.number, Joined: c.number.at / 1000}
		if got := rules.Position(at, nil, p, []byte("u")).State != IsInvalid; got != c.want {
			t.Errorf("a ticket %s is good: %v", what, got)
		}
	}
}
