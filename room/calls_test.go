package room

import (
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// One of three people who are called does not come. As three of four did, two are called for its unit, and others only
// when these have not come either: claims of the first two do not count for them.
func TestRoom_ForEachWhoDoesNotComeOneIsCalled(t *testing.T) {
	testkit.Nightly(t, "it waits until the time to claim has passed")
	t.Parallel()
	s := open(t, redistest.Start(t), func(o *Options) { o.Rules.ClaimWithin = 4 * time.Second })
	s.set(0, 1)
	s.inPhase(t, LastChance)
	var people []*person
	for i := range 30 {
		people = append(people, &person{user: fmt.Sprint("u", i)})
		people[i].ask(t, s, true, "join", "")
	}
	s.set(3, 0)
	testkit.Eventually(t, "three are called", func() bool { return s.view.Load().state.Called == 3 })
	for _, p := range people[:2] {
		if m, a := p.claims(t, s); m.Pass == "" {
			t.Fatalf("%s has no pass: %d %+v", p.user, a.Status, m)
		}
	}
	s.set(1, 0)
	for _, p := range people[:2] {
		s.Used([]byte(p.user))
	}
	testkit.Eventually(t, "two more are called, and then it is looked again", func() bool {
		state := s.view.Load().state
		return state.Called >= 5 && state.At > state.Steps[1].At+1500
	})
	steps := s.view.Load().state.Steps
	for i := 1; i < len(steps); i++ {
		if by := steps[i].Called - steps[i-1].Called; by > 2 || steps[i].At-steps[i-1].At < 3000 {
			t.Errorf("after %d ms %d are called: %+v", steps[i].At-steps[i-1].At, by, steps)
		}
	}
}
