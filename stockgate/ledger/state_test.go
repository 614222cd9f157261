package ledger

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

func TestState_OfAnOrderIsFoundWithAndWithoutItsSKU(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), testSKU, 5, 0))
		d := opened(t, testOptions(), s, nil)
		wants(t, "an order", d.buy("ann", "key"), Held)
		for _, of := range []string{testSKU, ""} {
			r, found, ok, err := d.State(of, "key")
			if err != nil || !ok || found != testSKU || r.Status != 'H' {
				t.Errorf("of %q: %+v %q %v %v", of, r, found, ok, err)
			}
			if _, _, ok, err := d.State(of, "other"); ok || err != nil {
				t.Errorf("of %q: an unknown serial: %v %v", of, ok, err)
			}
		}
	})
}

// A ledger that may lack orders does not say that there is none, and hides none of another SKU.
func TestStateOfAnOrder_FrozenLedgerDoesNotTell(t *testing.T) {
	t.Parallel()
	s := testkit.Must[*Store](t)(NewStore(optionsFor(redistest.Start(t), 64)))
	t.Cleanup(func() { s.Close() })
	d := opened(t, testOptions(), s, nil)
	for _, sku := range []string{"0", testSKU, "z"} {
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), sku, 5, 0))
		d.Track(sku)
	}
	wants(t, "an order", d.buy("ann", "key"), Held)
	for _, sku := range []string{"0", "z"} {
		testkit.Must[Stock](t)(s.SetState(t.Context(), sku, Frozen))
	}
	if _, found, ok, err := d.State("", "key"); !ok || err != nil || found != testSKU {
		t.Errorf("%q %v %v", found, ok, err)
	}
	for _, of := range []string{"", "0"} {
		if _, _, ok, err := d.State(of, "other"); ok || err == nil {
			t.Errorf("an unknown serial of %q: %v %v", of, ok, err)
		}
	}
}

func TestReserver_SearchesTakeNoLookUpOfThoseWhoNameTheSKU(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		d := opened(t, testOptions(), s, nil)
		wants(t, "known to have a ledger", d.buy("ann", ""), Held) // else nothing is searched
		s.set(func(string, bool) error { time.Sleep(10 * time.Millisecond); return nil })
		var searches sync.WaitGroup
		for range 3 * stateSize {
			searches.Go(func() { _, _, _, _ = d.State("", "x") })
		}
		synctest.Wait()
		for range 20 {
			if _, _, _, err := d.State(testSKU, "x"); err != nil {
				t.Fatal(err)
			}
		}
		searches.Wait()
	})
}

func TestReserver_LookUpsOfStatesAreBounded(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		d := opened(t, testOptions(), s, nil)
		s.set(func(string, bool) error { time.Sleep(10 * time.Millisecond); return nil })
		var rejected atomic.Int64
		testkit.Storm(3*stateSize, 3*stateSize, func(int) {
			switch _, _, _, err := d.State(testSKU, "x"); {
			case errors.Is(err, ErrTooMany):
				rejected.Add(1)
			case err != nil:
				t.Error(err)
			}
		})
		if n := rejected.Load(); n == 0 || n > 2*stateSize {
			t.Errorf("%d of %d were rejected", n, 3*stateSize)
		}
		if n := s.count("lookup"); n > 3 {
			t.Errorf("%d calls", n)
		}
		if _, _, _, err := d.State(testSKU, "x"); err != nil {
			t.Error("later:", err)
		}
	})
}
