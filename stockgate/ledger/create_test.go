package ledger

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

func TestCreate_LedgerIsCreatedOnceAndNeverOverOneThatIsThere(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		opening := Opening{Total: 500, Limit: 1, Opens: 1_000, Closes: 2_000}
		if got, made, err := s.Create(t.Context(), "1001", opening); err != nil || made || got.Total != 5 ||
			got.Limit != 2 ||
			got.Opens != 0 {
			t.Fatalf("over one that is there: %+v, made %v, %v", got, made, err)
		}
		var made atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				got, first, err := s.Create(t.Context(), "1002", opening)
				if err != nil || got.Total != 500 || got.Limit != 1 || got.Opens != 1_000 || got.Closes != 2_000 ||
					got.State != On ||
					got.Free != 500 {
					t.Errorf("%+v, %v", got, err)
				}
				if first {
					made.Add(1)
				}
			})
		}
		all.Wait()
		testkit.Want(t, "made", made.Load(), 1)
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1002", 300, KeepLimit))
		if got, _, err := s.Create(t.Context(), "1002", opening); err != nil || got.Total != 300 {
			t.Errorf("after an operator changed it: %+v, %v", got, err)
		}
		skus, err := s.SKUs(t.Context(), 10)
		if err != nil || len(skus) != 2 {
			t.Errorf("SKUs %q, %v", skus, err)
		}
		for _, bad := range []Opening{{Total: -1}, {Limit: KeepLimit}, {Opens: 2, Closes: 1}} {
			if _, made, err := s.Create(t.Context(), "1003", bad); err == nil || made {
				t.Errorf("%+v was made", bad)
			}
		}
	})
}

func TestCreate_LostLedgerIsNotCreatedAnew(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	saw := connect(t, server, texts())
	testkit.Must[Stock](t)(saw.SetTotal(t.Context(), "1001", 5, 0))
	takeUnit(t, saw, "s1", "ann")
	server.Client.FlushAll(t.Context())
	if _, _, err := saw.ReadStock(t.Context(), "1001"); !errors.Is(err, ErrLost) {
		t.Fatalf("the loss was not noticed: %v", err)
	}
	if _, made, err := saw.Create(t.Context(), "1001", Opening{Total: 5}); !errors.Is(err, ErrLost) ||
		made {
		t.Errorf("made %v, %v", made, err)
	}
}

// Redis may come up empty again and again: as long as an instance misses a ledger, another one that has never seen it
// does not make it as if it had never been.
func TestCreate_LedgerThatIsLostTwiceIsNotCreatedAnew(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	saw := connect(t, server, texts())
	testkit.Must[Stock](t)(saw.SetTotal(t.Context(), "1001", 5, 0))
	takeUnit(t, saw, "s1", "ann")
	for range 3 {
		server.Client.FlushAll(t.Context())
		if _, _, err := saw.ReadStock(t.Context(), "1001"); !errors.Is(err, ErrLost) {
			t.Fatalf("the loss was not noticed: %v", err)
		}
		if err := saw.NoteLost(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		other := connect(t, server, texts())
		if _, made, err := other.Create(t.Context(), "1001", Opening{Total: 5}); !errors.Is(err, ErrLost) || made {
			t.Errorf("made %v, %v", made, err)
		}
		if _, err := other.SetTotal(t.Context(), "1001", 5, 0); !errors.Is(err, ErrLost) {
			t.Errorf("its stock was set: %v", err)
		}
	}
}

func TestCreate_LedgerWhoseHistoryIsThereIsNotCreatedAnew(t *testing.T) {
	server := redistest.Start(t)
	testkit.Must[Stock](t)(connect(t, server, texts()).SetTotal(t.Context(), "1001", 5, 0))
	server.Client.Del(t.Context(), keys("1001")[0])
	if _, made, err := connect(t, server, texts()).Create(t.Context(), "1001", Opening{Total: 5}); err == nil ||
		made {
		t.Errorf("made %v, %v", made, err)
	}
}
