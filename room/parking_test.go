package room

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy"
	"sluice/proxy/reject"
)

func TestRoom_ParkedClientsAreToldOfTheEnd(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), nil)
	s.set(0, 1)
	s.inPhase(t, LastChance)
	var parked sync.WaitGroup
	var people []*person
	for i := range 20 {
		p := &person{user: fmt.Sprint("u", i)}
		people = append(people, p)
		if m, _ := p.ask(t, s, true, "join", ""); m.State != "waiting" || m.Returns == 0 {
			t.Fatalf("%+v", m)
		}
		parked.Go(func() {
			if m, _ := p.ask(t, s, false, "me", "wait=30"); m.Phase != Over || m.State != "waiting" {
				t.Errorf("%d: %+v", i, m)
			}
		})
	}
	testkit.Eventually(t, "all are parked", func() bool { return s.count() == 20 })
	s.set(0, 0)
	parked.Wait()
	if called := s.view.Load().state.Called; called != 0 {
		t.Errorf("%d were called while nothing was free", called)
	}
	late := &person{user: "late"}
	if _, a := late.ask(t, s, true, "join", ""); a.Rejection != reject.SoldOut {
		t.Errorf("joining after the end: %v", a.Rejection)
	}
	s.set(1, 0) // a unit came back: it is offered to the first one who waits
	testkit.Eventually(t, "one is called", func() bool { return s.view.Load().state.Called == 1 })
	for i, p := range people {
		if m, _ := p.ask(t, s, false, "me", ""); m.Number != int64(i+1) || (m.ClaimFrom != 0) != (i == 0) {
			t.Errorf("%d: %+v", i+1, m)
		}
	}
}

// meanwhile is a client to whom something happens while its request is looked at.
type meanwhile struct {
	there
	happens func()
}

func (c *meanwhile) Resumed() bool {
	c.happens()
	return false
}

func TestRoom_NewsThatComeBeforeAClientIsParkedAreInItsAnswer(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"me", ""} {
		s := open(t, redistest.Start(t), nil)
		s.set(0, 1)
		s.inPhase(t, LastChance)
		a := s.Answer(&proxy.RoomQuestion{Action: []byte(action), User: []byte("ann"), Prefer: []byte("wait=30"),
			Time: time.Now().UnixMilli(), Client: &meanwhile{happens: func() {
				s.set(0, 0)
				s.inPhase(t, Over)
			}}})
		var m struct{ Phase Phase }
		if err := json.Unmarshal(a.Body, &m); a.Suspended || err != nil || m.Phase != Over {
			t.Errorf("%q: suspended %v, %v: %s", action, a.Suspended, err, a.Body)
		}
	}
}

func TestRoom_MoreThanMaxParkedAreAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), func(o *Options) { o.MaxParked = 1 })
	s.set(0, 1)
	s.inPhase(t, LastChance)
	var parked sync.WaitGroup
	parked.Go(func() { (&person{user: "a"}).ask(t, s, false, "me", "wait=30") })
	testkit.Eventually(t, "one is parked", func() bool { return s.count() == 1 })
	if m, _ := (&person{user: "b"}).ask(t, s, false, "me", "respond-async, wait=30"); m.State != "none" {
		t.Errorf("%+v", m)
	}
	s.StopWaiting() // as before a shutdown
	parked.Wait()
}
