package settle

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/storetest"
)

// waits is a database that knows no order, and keeps how long the settler waits. Settler uses nothing else of it.
type waits struct {
	Database
	last     time.Duration
	reported int
}

func (w *waits) Due(context.Context, int) ([]Giveback, error) { return nil, nil }
func (w *waits) GiveBack(context.Context, Giveback, Position) (Known, int64, error) {
	return KnownNot, 0, nil
}
func (w *waits) Done(context.Context, Giveback, string) error { panic("BUG: it is not done") }
func (w *waits) Report(context.Context, ...Conflict) error    { w.reported++; return nil }
func (w *waits) Postpone(_ context.Context, _ Giveback, d time.Duration) error {
	w.last = d
	return nil
}

func TestGiveback_WaitsLongerAndLongerAndTellsAfterAnHour(t *testing.T) {
	client := storetest.Link(t, redistest.Start(t).Addr)
	db := &waits{}
	s, err := New(Stream{Name: "shop", Redis: client}, db, Options{Batch: 1, Givebacks: db,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for tries, want := range map[int]time.Duration{
		0: time.Second, 1: 2 * time.Second, 3: 8 * time.Second, 8: 256 * time.Second,
		9: 5 * time.Minute, 1 << 40: 5 * time.Minute,
	} {
		err := s.giveBack(t.Context(), Giveback{SKU: "1001", Tries: tries, Age: time.Hour - 1})
		if err != nil || db.last != want {
			t.Errorf("after %d tries it waits %v, %v: want %v", tries, db.last, err, want)
		}
	}
	if db.reported != 0 {
		t.Error("an operator is told before an hour has passed")
	}
	if err := s.giveBack(t.Context(), Giveback{SKU: "1001", Age: time.Hour}); err != nil || db.reported != 1 {
		t.Errorf("after an hour an operator was told %d times, %v", db.reported, err)
	}
}
