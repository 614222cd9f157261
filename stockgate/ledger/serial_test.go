package ledger

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
)

func TestSerial_DerivedSerialIsTheSameEverywhereAndOfOneOrderAlone(t *testing.T) {
	s := newFakeStore()
	d, same := opened(t, testOptions(), s, nil), opened(t, testOptions(), s, nil)
	o := testOptions()
	o.Secret = []byte("another of sixteen bytes")
	other := opened(t, o, s, nil)
	seen := make(map[string]bool)
	for _, c := range []struct {
		sku, user  string
		sale       int64
		generation int
	}{{"1001", "7", 0, 0}, {"1001", "7", 0, 1}, {"1001", "8", 0, 0}, {"1002", "7", 0, 0}, {"100", "17", 0, 0},
		{"10017", "", 0, 0}, {"1001", "7", 1, 0}, {"1001", "7", 1, 1}, {"1001", "7", 2, 0}} {
		got := d.derive([]byte(c.sku), []byte(c.user), c.sale, c.generation)
		if got != same.derive([]byte(c.sku), []byte(c.user), c.sale, c.generation) {
			t.Errorf("%v: two instances disagree", c)
		}
		if got == other.derive([]byte(c.sku), []byte(c.user), c.sale, c.generation) {
			t.Errorf("%v: the secret does not matter", c)
		}
		if seen[got] || !ValidSerial([]byte(got)) || len(got) != 32 {
			t.Errorf("%v: %s", c, got)
		}
		seen[got] = true
	}
}

func TestSerial_UserWithoutKeysHasOneUndecidedOrderAndThenTheNext(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newFakeStore()
		s.put(testSKU, 10, 2)
		o := testOptions()
		o.PerUser = 2
		reservers := []*Reserver{opened(t, o, s, nil), opened(t, o, s, nil)}
		each := func(what string, want Code) (out Outcome) {
			t.Helper()
			for _, d := range reservers {
				out = d.buy("7", "")
				wants(t, what, out, want)
			}
			return out
		}
		settle := func(serial string, op Op) {
			reservers[0].Settle(testSKU, serial, op)
			synctest.Wait()
		}
		first := reservers[0].buy("7", "")
		wants(t, "first", first, Held)
		each("first is under way", ReplayHeld)
		settle(first.Serial, Release)
		second := reservers[1].buy("7", "")
		wants(t, "first came to nothing", second, Held)
		settle(second.Serial, Confirm)
		third := reservers[1].buy("7", "")
		wants(t, "second is sold", third, Held)
		each("third is under way", ReplayHeld)
		settle(third.Serial, Confirm)
		if last := each("no more", ReplaySold); last.Serial != third.Serial {
			t.Errorf("%v, want %s", last, third.Serial)
		}
		if st := s.stock(testSKU); st.Sold != 2 || st.Held != 0 {
			t.Errorf("stock %+v", st)
		}
	})
}

func TestSerial_BuyerWithoutKeysHearsOfTheSaleWhenAllIsGone(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 2)
		o := testOptions()
		o.PerUser = 5
		d := opened(t, o, s, nil)
		won := d.buy("7", "")
		wants(t, "first", won, Held)
		d.Settle(testSKU, won.Serial, Confirm)
		synctest.Wait()
		wants(t, "the last unit", d.buy("8", ""), Held)
		fresh := opened(t, o, s, nil) // has an empty cache
		if out := fresh.buy("7", ""); out.Code != ReplaySold || out.Serial != won.Serial {
			t.Errorf("%v", out)
		}
	})
}

func TestSerial_AnotherQuantityIsNoOtherOrderWithoutAKey(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		o := testOptions()
		o.PerUser = 3
		d := opened(t, o, s, nil)
		two := attempt("7", "")
		two.Quantity = 2
		first := d.buy("7", "")
		wants(t, "one", first, Held)
		wants(t, "two meanwhile", d.Reserve(0, two), ReplayHeld)
		d.Settle(testSKU, first.Serial, Confirm)
		synctest.Wait()
		wants(t, "two more", d.Reserve(0, two), Held)
	})
}

func TestSerial_UserWithoutKeysHasNoMoreThanPerUserEvenWhereTheLedgerAllowsMore(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		o.PerUser = 2
		d := opened(t, o, fakeStoreOf(testSKU, 10), nil)
		for range 2 {
			out := d.buy("7", "")
			wants(t, "order", out, Held)
			d.Settle(testSKU, out.Serial, Confirm)
			synctest.Wait()
		}
		wants(t, "one more", d.buy("7", ""), ReplaySold)
	})
}

// Who had an earlier order refunded may buy again, whatever the reserver remembers of the later one.
func TestReserver_RefundOfAnEarlierGenerationLetsItsBuyerBuyAgain(t *testing.T) {
	at(t, func(t *testing.T) {
		s := newFakeStore()
		s.put(testSKU, 10, 2)
		o := testOptions()
		o.PerUser = 2
		reservers := []*Reserver{opened(t, o, s, nil), opened(t, o, s, nil)}
		settle := func(d *Reserver, serial string, op Op) {
			d.Settle(testSKU, serial, op)
			synctest.Wait()
		}
		var serials []string
		for range 2 {
			out := reservers[0].buy("7", "")
			wants(t, "order", out, Held)
			settle(reservers[0], out.Serial, Confirm)
			serials = append(serials, out.Serial)
		}
		for _, d := range reservers {
			wants(t, "no more", d.buy("7", ""), ReplaySold)
		}
		settle(reservers[1], serials[0], Refund)
		again := reservers[0].buy("7", "")
		wants(t, "after the refund", again, Held)
		settle(reservers[0], again.Serial, Confirm)
		for _, d := range reservers {
			wants(t, "no more once again", d.buy("7", ""), ReplaySold)
		}
		testkit.Want(t, "sold", s.stock(testSKU).Sold, 2)
	})
}

// A shop is down for a while: a user without keys tries more often than one call tries generations, and buys once the
// shop is up again. Whatever an instance remembers of it, also another one, and one that has just started, the user has
// one order at a time, and no more units than the limit; and a repetition is answered with the order that has won.
func TestSerial_UserWhoseOrdersCameToNothingBuysOnceTheShopIsUp(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		o := testOptions()
		o.PerUser = 2
		all := []*Reserver{opened(t, o, s, nil), opened(t, o, s, nil)}
		buy := func(d *Reserver) Outcome {
			t.Helper()
			for range 10 { // each call goes on where the last one has ended
				if out := d.buy("ann", ""); out.Code != Overloaded {
					return out
				}
			}
			t.Fatal("the calls come to no end")
			return Outcome{}
		}
		settle := func(d *Reserver, serial string, op Op, want Status) {
			t.Helper()
			d.Settle(testSKU, serial, op)
			testkit.Eventually(t, serial+" is settled", func() bool {
				rec, ok, err := s.Find(t.Context(), testSKU, serial)
				return err == nil && ok && rec.Status == want
			})
		}
		outage := func(d *Reserver, times int) {
			t.Helper()
			for i := range times {
				out := d.buy("ann", "")
				wants(t, fmt.Sprintf("attempt %d", i), out, Held)
				settle(d, out.Serial, Release, StatusReleased)
			}
		}
		var won []Outcome
		for range 2 {
			outage(all[0], maxGenerations+10)
			all = append(all, opened(t, o, s, nil)) // has an empty cache
			out := buy(all[1])
			wants(t, "the shop is up", out, Held)
			for _, d := range all {
				if again := buy(d); again.Code != ReplayHeld || again.Serial != out.Serial {
					t.Errorf("under way: %+v, want %s", again, out.Serial)
				}
			}
			settle(all[1], out.Serial, Confirm, StatusSold)
			won = append(won, out)
		}
		all = append(all, opened(t, o, s, nil))
		for _, d := range all {
			if again := buy(d); again.Code != ReplaySold || again.Serial != won[1].Serial {
				t.Errorf("won: %+v, want %s", again, won[1].Serial)
			}
		}
		st, _, err := s.ReadStock(t.Context(), testSKU)
		testkit.Check(t, err)
		testkit.Want(t, "sold", st.Sold, 2)
		testkit.Want(t, "held", st.Held, 0)
	})
}

// Of what was bought before many orders that came to nothing, the buyer hears also when all is gone.
func TestSerial_BuyerHearsOfTheSaleBehindManyOrdersThatCameToNothing(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 2)
		o := testOptions()
		o.PerUser = 5
		d := opened(t, o, s, nil)
		won := d.buy("7", "")
		wants(t, "first", won, Held)
		d.Settle(testSKU, won.Serial, Confirm)
		for range maxGenerations + 10 {
			synctest.Wait()
			out := d.buy("7", "")
			wants(t, "attempt", out, Held)
			d.Settle(testSKU, out.Serial, Release)
		}
		synctest.Wait()
		wants(t, "the last unit", d.buy("8", ""), Held)
		fresh := opened(t, o, s, nil) // has an empty cache
		wants(t, "on the way", fresh.buy("7", ""), Overloaded)
		for _, d := range []*Reserver{d, fresh} {
			if out := d.buy("7", ""); out.Code != ReplaySold || out.Serial != won.Serial {
				t.Errorf("%v, want %s", out, won.Serial)
			}
		}
	})
}

func TestSerial_WithoutALimitEachRequestWithoutAKeyIsAnOrderOfItsOwn(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		o.PerUser = 0
		d := opened(t, o, fakeStoreOf(testSKU, maxGenerations+1), nil)
		seen := map[string]bool{}
		for i := range maxGenerations + 1 {
			out := d.buy("7", "")
			wants(t, fmt.Sprint(i), out, Held)
			seen[out.Serial] = true
			if i%2 == 0 {
				d.Settle(testSKU, out.Serial, Confirm)
			}
		}
		testkit.Want(t, "serials", len(seen), maxGenerations+1)
		synctest.Wait()
		wants(t, "one more", d.buy("7", ""), Undecided)
	})
}

func TestSerial_OrdersThatNothingIdentifiesAreOfTheirOwn(t *testing.T) {
	s := fakeStoreOf(testSKU, 10)
	d := opened(t, testOptions(), s, nil)
	a, b := d.buy("", ""), d.buy("", "")
	if a.Code != Held || b.Code != Held || a.Serial == b.Serial ||
		!ValidSerial([]byte(a.Serial)) {
		t.Errorf("%v, %v", a, b)
	}
}

func FuzzValidSerial(f *testing.F) {
	for _, s := range []string{"", "a", ".", "..", "...", "a b", "é", "{}", "a|b", "\x00", "0123456789", `\x41`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, key []byte) {
		if !ValidSerial(key) {
			return
		}
		if len(key) > MaxSerial || len(key) == 0 {
			t.Fatalf("%d bytes", len(key))
		}
		s, err := NewStatusURL("http://shop.example/orders/{serial}/status?by={x}")
		if err != nil {
			t.Fatal(err)
		}
		if path := s.urlOf("1001", string(key)); !oneSegment(path, string(key)) {
			t.Fatalf("%q is asked for as %q", key, path)
		}
	})
}

// A user who sends no key cancels an order, and buys again a day later, in the same sale. The shop answers a known
// serial with the order that it created: the new order has another serial.
func TestSerial_OrderOfADayLaterIsNotTheOneThatWasRefunded(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		first := opened(t, testOptions(), s, nil)
		out := first.buy("ann", "")
		wants(t, "the first order", out, Held)
		now, done := time.Now(), make([]Done, 1)
		_, err := s.Finish(t.Context(), testSKU, now.UnixMilli(), now.Add(KeepReleased).UnixMilli(), Refund,
			[]Item{{Serial: out.Serial}}, done)
		testkit.Check(t, err)
		testkit.Want(t, "the shop cancels it", done[0], Changed)
		later := now.Add(KeepReleased + time.Hour)
		_, err = s.Sweep(t.Context(), testSKU, later.UnixMilli(), later.UnixMilli()+1000, 10)
		testkit.Check(t, err)
		o := testOptions()
		o.Clock = func() time.Time { return time.Now().Add(KeepReleased + time.Hour) }
		again := opened(t, o, s, nil).buy("ann", "")
		wants(t, "a day later", again, Held)
		if again.Serial == out.Serial {
			t.Errorf("the shop gets the serial %s of the order that it has cancelled", again.Serial)
		}
	})
}

func ExampleReserver() {
	var store Calls = fakeStoreOf("1001", 1)
	reserver, err := New(Options{Secret: []byte("the same for all instances"), PerUser: 1}, store, nil)
	if err != nil {
		panic(err)
	}
	order := Order{SKU: []byte("1001"), User: []byte("7"), Quantity: 1}
	out := reserver.Reserve(0, order)
	fmt.Println("forward:", out.Code == Held)
	fmt.Println("forward again:", reserver.Reserve(0, order).Code == Held)
	reserver.Settle("1001", out.Serial, Confirm) // the shop took it
	reserver.Close(context.Background())
	// Output:
	// forward: true
	// forward again: false
}
