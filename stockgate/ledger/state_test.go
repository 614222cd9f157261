package ledger

import (
	"errors"
	"testing"
	"time"
)

func TestStateOfAnOrderIsFoundWithAndWithoutItsSKU(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		must[Stock](t)(s.SetTotal(t.Context(), sku, 5, 0))
		d := opened(t, deskOptions(), s, nil)
		wants(t, "an order", d.buy("ann", "key"), Held)
		for _, of := range []string{sku, ""} {
			r, found, ok, err := d.State(d.o.Now(), of, "key")
			if err != nil || !ok || found != sku || r.Status != 'H' {
				t.Errorf("of %q: %+v %q %v %v", of, r, found, ok, err)
			}
			if _, _, ok, err := d.State(d.o.Now(), of, "other"); ok || err != nil {
				t.Errorf("of %q: a serial that nobody knows: %v %v", of, ok, err)
			}
		}
	})
}

func TestLooksForStatesAreBounded(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 10)
		d := opened(t, deskOptions(), s, nil)
		now := d.o.Now()
		for range looksAtOnce {
			if _, _, _, err := d.State(now, sku, "x"); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, _, err := d.State(now, sku, "x"); !errors.Is(err, ErrTooMany) {
			t.Errorf("one more: %v", err)
		}
		if _, _, _, err := d.State(now+lookEvery, sku, "x"); err != nil {
			t.Errorf("later: %v", err)
		}
		for range lookers {
			d.lookers <- struct{}{}
		}
		began := time.Now()
		if _, _, _, err := d.State(now+int64(time.Hour), sku, "x"); !errors.Is(err, ErrTooMany) || time.Since(began) != d.o.MaxWait {
			t.Errorf("when all look: %v after %v", err, time.Since(began))
		}
		for range lookers {
			<-d.lookers
		}
	})
}
