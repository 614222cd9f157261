package ledger

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
)

// An order that waits while the next sale begins does not take a unit there under the serial that it had.
func TestSale_OrderThatWaitsIsDerivedAnew(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 5)
		d := opened(t, testOptions(), s, nil)
		wants(t, "the sale is known", d.buy("bob", ""), Held)
		var once sync.Once
		s.set(func(op string, after bool) error {
			if op == "reserve" && !after {
				once.Do(func() { time.Sleep(time.Second) })
			}
			return nil
		})
		var all sync.WaitGroup
		buys := func(user string) {
			all.Go(func() { wants(t, user, d.buy(user, ""), Held) })
			synctest.Wait()
		}
		buys("in a call")
		buys("waits")
		next := s.nextSale(testSKU, 5)
		d.Learn(testSKU, next)
		all.Wait()
		for _, user := range []string{"in a call", "waits"} {
			for _, sale := range []int64{0, next.Sale} {
				serial := d.derive([]byte(testSKU), []byte(user), sale, 0)
				if got := s.record(testSKU, serial).Status == 'H'; got != (sale == next.Sale) {
					t.Errorf("%s, sale %d: held %v", user, sale, got)
				}
			}
		}
	})
}

// staleStore is a ledger that is always in a later sale than its caller knows.
type staleStore struct{ *fakeStore }

func (s staleStore) Reserve(_ context.Context, sku string, _, _, _ int64, _ []Item, codes []Code) (
	StockVersion, error,
) {
	h := s.nextSale(sku, 5)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["reserve"]++
	for i := range codes {
		codes[i] = StaleEpoch
	}
	return h, nil
}

func TestSale_OrderIsAnsweredAnewAFewTimesAtMost(t *testing.T) {
	at(t, func(t *testing.T) {
		s := staleStore{fakeStoreOf(testSKU, 5)}
		d := opened(t, testOptions(), s, nil)
		for n, key := range []string{"", "k"} {
			wants(t, "key "+key, d.buy("ann", key), Overloaded)
			testkit.Want(t, "calls", s.count("reserve"), (n+1)*maxStale)
		}
	})
}

func TestSale_KnownOrderOfAUserCountsInItsSaleAlone(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 5)
		d := opened(t, testOptions(), s, nil)
		first := d.buy("ann", "")
		wants(t, "first", first, Held)
		q, o := d.skus.Find([]byte(testSKU)), &Order{User: []byte("ann")}
		if k := d.known(d.o.Now(), q, o); k == nil || k.Serial != first.Serial {
			t.Fatalf("in its sale: %+v", k)
		}
		d.Learn(testSKU, s.nextSale(testSKU, 5))
		if k := d.known(d.o.Now(), q, o); k != nil {
			t.Errorf("in the next sale: %s", k.Serial)
		}
	})
}

// An instance that missed the news of the next sale answers no winner of it with sold_out.
func TestSale_WinnerIsFoundByAnInstanceThatMissedTheNextSale(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 1)
		o := testOptions()
		o.PerUser = 1
		sellsOut := func(d *Reserver, user string) Outcome {
			out := d.buy(user, "")
			wants(t, user, out, Held)
			d.Settle(testSKU, out.Serial, Confirm)
			synctest.Wait()
			return out
		}
		missed := opened(t, o, s, nil)
		sellsOut(missed, "bob")
		wants(t, "the first sale", missed.buy("zoe", ""), SoldOut)
		s.nextSale(testSKU, 1)
		won := sellsOut(opened(t, o, s, nil), "ann")
		out := missed.buy("ann", "")
		wants(t, "a winner of the next sale", out, ReplaySold)
		testkit.Want(t, "serial", out.Serial, won.Serial)
		wants(t, "a winner of the first sale", missed.buy("bob", ""), SoldOut)
	})
}
