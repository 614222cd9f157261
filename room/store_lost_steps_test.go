package room

import (
	"slices"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// Redis loses the steps that one instance has read, and another one makes as many others before the first reads again:
// both have the steps of Redis then.
func TestTick_StepsThatRedisLostAreForgotten(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	sale, rules := Sale{Ends: time.Now().Add(time.Hour).UnixMilli()}, Rules{}
	a, b := openStore(t, r), openStore(t, r)
	step := func(s *Store, last *State, serving int64) *State {
		t.Helper()
		on := s.read(t, rules, sale, nil, last).State
		if moved, err := s.Move(t.Context(), on, Move{Calls: 10, Serving: serving}, 0); err != nil || !moved {
			t.Fatal(moved, err)
		}
		time.Sleep(1100 * time.Millisecond) // the calls of a second are one step
		return s.read(t, rules, sale, nil, on).State
	}
	if made, err := a.Create(t.Context(), &rules, sale, storeReading{}); err != nil || !made {
		t.Fatal(made, err)
	}
	if _, err := a.Join(t.Context(), 1000, "u"); err != nil {
		t.Fatal(err)
	}
	first := step(a, nil, 10)
	known := b.read(t, rules, sale, nil, nil)
	far := step(a, step(a, first, 500), 600)
	if err := r.Client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if made, err := b.Create(t.Context(), &rules, sale, known); err != nil || !made {
		t.Fatal(made, err)
	}
	at := step(b, step(b, known.State, 20), 30)
	if got := a.read(t, rules, sale, nil, far).State; !slices.Equal(got.Steps, at.Steps) {
		t.Errorf("one instance has %v, the other one %v", got.Steps, at.Steps)
	}
}
