package room

import (
	"testing"
	"time"

	"sluice/internal/redistest"
)

// People who come after the start and before its first tick are behind the draw. Their tickets say that they are late:
// if the draw counted them as early, no one would ever call them.
func TestStore_JoinersBeforeTheFirstTickAreBehindTheDraw(t *testing.T) {
	s, sale := joinedEarly(t, time.Second)
	time.Sleep(time.Until(time.UnixMilli(sale.Starts + 1))) // Redis has a clock of its own
	for i := range int64(3) {
		if n, err := s.Join(t.Context(), 1); err != nil || n.number != 6+i || n.early {
			t.Fatalf("after the start: %+v, %v", n, err)
		}
	}
	got := s.read(t, Rules{Draw: true}, sale, nil, nil)
	if got.State.Early != 5 || got.State.Issued != 8 {
		t.Errorf("%d of %d are drawn, want 5 of 8", got.State.Early, got.State.Issued)
	}
}

// joinedEarly is a room in which five people have joined before the start. On a machine that needs longer than until
// then another room is made, whose start is later.
func joinedEarly(t *testing.T, lead time.Duration) (*Store, Sale) {
	t.Helper()
	starts := time.Now().Add(lead)
	sale := Sale{Starts: starts.UnixMilli(), Ends: starts.Add(time.Hour).UnixMilli()}
	s := made(t, redistest.Start(t), sale)
	switch n, err := s.Join(t.Context(), 5); {
	case err != nil || n.number != 1 || !n.early && time.Now().Before(starts):
		t.Fatalf("before the start: %+v, %v", n, err)
	case !n.early:
		return joinedEarly(t, 2*lead)
	}
	return s, sale
}
