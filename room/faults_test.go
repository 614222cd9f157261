package room

import (
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy"
)

// A client that was told of the last chance asks again; when its request comes the end has come.
func TestRoom_NoRequestIsParkedAtTheEnd(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), nil)
	s.inPhase(t, Open)
	p := &person{user: "a"}
	for range 3 { // two are called
		p = &person{user: p.user + "a"}
		p.ask(t, s, true, "join", "")
	}
	s.set(0, 1)
	s.inPhase(t, LastChance)
	s.set(0, 0)
	s.inPhase(t, Over)
	for _, action := range []string{"me", ""} {
		q := &proxy.RoomQuestion{Action: []byte(action), User: []byte(p.user), Signed: []byte(p.signed), Client: new(there),
			Prefer: []byte("wait=20"), Time: time.Now().UnixMilli()}
		if a := s.Answer(q); a.Suspended || !strings.Contains(string(a.Body), `"phase":"over"`) {
			t.Errorf("%q: %+v %s", action, a.Suspended, a.Body)
		}
	}
}

func TestRoom_AnInstanceThatEndsAnswersThoseWhoWait(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), nil)
	s.inPhase(t, Open)
	heard := make(chan me)
	go func() {
		m, _ := (&person{user: "a"}).ask(t, s, false, "me", "wait=30")
		heard <- m
	}()
	testkit.Eventually(t, "it is parked", func() bool { return s.count() == 1 })
	s.StopWaiting()
	if m := <-heard; m.Phase != Open {
		t.Errorf("%+v", m)
	}
	if m, _ := (&person{user: "b"}).ask(t, s, false, "me", "wait=30"); m.Phase != Open { // it is not parked
		t.Errorf("%+v", m)
	}
}

// A replica that took over has not heard of the last numbers. A person who has one keeps it, though no one joins any
// more, and though the instance is gone that has given it; who joins meanwhile shares a number with another one at
// most.
func TestRoom_NumbersThatRedisHasLostCountAgain(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	gives, reads := open(t, r, nil), open(t, r, nil)
	for _, s := range []*stand{gives, reads} {
		s.set(0, 1)
		s.inPhase(t, LastChance)
	}
	people := []*person{{user: "a"}, {user: "b"}, {user: "c"}}
	for i, p := range people {
		if m, _ := p.ask(t, gives, true, "join", ""); m.Number != int64(i+1) {
			t.Errorf("%s has number %d", p.user, m.Number)
		}
	}
	known := func() bool { return reads.view.Load().state.Issued == 3 }
	testkit.Eventually(t, "the other instance has read of them", known)
	gives.Close()
	if err := r.Client.HSet(t.Context(), "sluice:shop:room:{r}:s", "issued", 1).Err(); err != nil {
		t.Fatal(err)
	}
	late := &person{user: "late"}
	if m, _ := late.ask(t, reads, true, "join", ""); m.Number != 2 && m.Number != 4 {
		t.Errorf("one who joins has number %d", m.Number)
	}
	reads.set(4, 0)
	for _, p := range append(people, late) {
		testkit.Eventually(t, p.user+" is called", func() bool {
			m, _ := p.ask(t, reads, false, "me",
				"")
			return m.State == "called"
		})
	}
}

// Redis is empty, and no instance is left that knows the room: no one can tell who came first. It is another room, and
// an old ticket is not taken for one of it.
func TestRoom_WhereNoInstanceKnowsItAnyMoreItIsAnotherOne(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	s := open(t, r, nil)
	s.set(0, 1)
	s.inPhase(t, LastChance)
	p := &person{user: "a"}
	p.ask(t, s, true, "join", "")
	s.Close()
	r.Kill()
	next := open(t, r, nil)
	r.Restart()
	testkit.Eventually(t, "the room is made", func() bool { return next.log.Count("room: made") == 1 })
	testkit.Eventually(t, "the old ticket is invalid", func() bool {
		m, _ := p.ask(t, next, false, "me", "")
		return m.State == IsInvalid
	})
	if m, a := p.ask(t, next, true, "join", ""); m.Number != 1 || m.Signed == "" {
		t.Errorf("joining again: %d %+v", a.Status, m)
	}
}

func TestRoom_PassOfAnOldKeyIsGood(t *testing.T) {
	r := standing(t)
	user, at := []byte("u1"), int64(1_000_000)
	pass := r.passes.Append(nil, r.view.Load().passes, user, at+1)
	next := []byte("0123456789abcdef-next")
	for keys, want := range map[*[][]byte]bool{{next, key}: true, {next}: false} {
		made, err := newSecrets(*keys)
		if err != nil {
			t.Fatal(err)
		}
		r.secrets = made
		if got := admits(r, at, nil, user, pass); got != want {
			t.Errorf("with %d keys a pass by the one before is good: %v", len(*keys), got)
		}
	}
}

func TestRoom_ARequestIsAnsweredBeforeItsClientGivesUp(t *testing.T) {
	now := time.UnixMilli(0)
	for wait, want := range map[time.Duration]time.Duration{time.Second: 500 * time.Millisecond,
		30 * time.Second: 29 * time.Second} {
		if got := end(now, wait).Sub(now); got != want {
			t.Errorf("a wait of %v ends after %v", wait, got)
		}
	}
	p := parking{most: 2, waiters: map[*waiter]struct{}{}}
	resumed := 0
	for _, until := range []int64{1, 5} {
		p.waiters[&waiter{until: time.UnixMilli(until), client: new(there), resume: func() { resumed++ }}] = struct{}{}
	}
	if p.sweep(time.UnixMilli(1), true); resumed != 1 || p.count() != 1 {
		t.Errorf("%d are answered, %d wait", resumed, p.count())
	}
}
