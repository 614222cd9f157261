package ledger

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
)

func TestStatus_WhatIsShownIsAtMostSoOldAndCostsOneLookForAll(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		d := opened(t, testOptions(), s, nil)
		if _, ok := d.Status(d.o.Now(), []byte(testSKU)); ok {
			t.Fatal("a SKU is shown that was never asked for")
		}
		d.Track(testSKU)
		time.Sleep(time.Second)
		d.Status(d.o.Now(), []byte(testSKU))
		synctest.Wait()
		if got, ok := d.Status(d.o.Now(), []byte(testSKU)); !ok || got.Free != 10 || got.Held != 0 {
			t.Fatalf("%+v, %v", got, ok)
		}
		before := s.count("look")
		s.say(func(st *Stock) { st.Sold, st.Free, st.Ver = 4, 6, st.Ver+1 })
		for range 1000 {
			d.Status(d.o.Now(), []byte(testSKU))
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if got, _ := d.Status(d.o.Now(), []byte(testSKU)); got.Free != 6 {
			t.Errorf("others have sold 4: %+v", got)
		}
		if n := s.count("look") - before; n > 2 {
			t.Errorf("%d looks in a second", n)
		}
	})
}

// A page shows without an order that a ledger is gone.
func TestStatus_LedgerThatIsGoneIsShownAsLost(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		d := opened(t, testOptions(), s, nil)
		d.Track(testSKU)
		shown := func() StockVersion {
			time.Sleep(time.Second)
			d.Status(d.o.Now(), []byte(testSKU))
			synctest.Wait()
			h, _ := d.Status(d.o.Now(), []byte(testSKU))
			return h
		}
		if got := shown(); got.State != On {
			t.Fatalf("%+v", got)
		}
		s.set(func(op string, _ bool) error {
			if op == "look" {
				return LostLedger(testSKU)
			}
			return nil
		})
		if got := shown(); got.State != Lost {
			t.Errorf("%+v, want that it is lost", got)
		}
		s.set(nil)
		if got := shown(); got.State != On || got.Free != 10 {
			t.Errorf("%+v, want that it is there again", got)
		}
	})
}

func TestStatus_InventedSKUsAreNotShownAndCostNothing(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		d := opened(t, testOptions(), s, nil)
		for i := range 1000 {
			if _, ok := d.Status(d.o.Now(), fmt.Append(nil, "invented-", i)); ok {
				t.Fatal("shown")
			}
		}
		synctest.Wait()
		testkit.Want(t, "lines", len(d.skus.All()), 0)
		testkit.Want(t, "looks", s.count("look"), 0)
	})
}

func TestStatus_ShopThatSaysSoldOutIsLeftAloneAndWinnersAreNotLiedTo(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		d := opened(t, testOptions(), s, nil)
		wants(t, "the winner", d.buy("ann", "key-of-ann"), Held)
		d.MarkSoldOut(d.o.Now(), []byte(testSKU))
		before := s.count("reserve")
		for range 100 {
			wants(t, "an order without a name", d.buy("", ""), SoldOut)
		}
		wants(t, "the winner's retry", d.buy("ann", "key-of-ann"), ReplayHeld)
		for i := range 15 {
			wants(t, "a loser", d.buy(fmt.Sprint("u", i), fmt.Sprint("k", i)), SoldOut)
		}
		testkit.Want(t, "orders that the ledger heard of", s.count("reserve")-before, 0)
		time.Sleep(time.Second)
		wants(t, "after sold_out_ttl", d.buy("bob", "key-of-bob"), Held)
	})
}

func TestStatus_HoursAreKeptByTheSharedClock(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		opens := time.Now().Add(10 * time.Second)
		testkit.Must[Stock](t)(s.SetSchedule(t.Context(), testSKU, opens.UnixMilli(), 0))
		o := testOptions()
		// The shared clock is ahead of this machine's.
		o.Wall = func() time.Time { return time.Now().Add(400 * time.Millisecond) }
		d := opened(t, o, s, nil)
		wants(t, "early", d.buy("ann", ""), NotOnSale)
		time.Sleep(9600*time.Millisecond - 1)
		wants(t, "almost", d.buy("ann", ""), NotOnSale)
		time.Sleep(time.Nanosecond)
		wants(t, "at the very moment", d.buy("ann", ""), Held)
	})
}

// A page that asks right after a start is told what a ledger has.
func TestReadFirst_StatusKnowsTheLedgerAtOnce(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		d := opened(t, testOptions(), s, nil)
		d.ReadFirst(t.Context(), testSKU)
		if got, ok := d.Status(d.o.Now(), []byte(testSKU)); !ok || got.Free != 10 {
			t.Errorf("%+v, %v", got, ok)
		}
		d.ReadFirst(t.Context(), "none")
		if _, ok := d.Status(d.o.Now(), []byte("none")); ok || len(d.ledgers()) != 1 {
			t.Errorf("a SKU without a ledger is shown, or looked after: %q", d.ledgers())
		}
	})
}

// A ledger that this instance has not met is read, and then followed. One that cannot be read, or that is closed, may
// have ended: only what is known is told.
func TestReserver_EndedIsKnownOrNotTold(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(testSKU, 10)
		d := opened(t, testOptions(), s, nil)
		want := func(what, sku string, ended, known bool) {
			t.Helper()
			if e, k := d.Ended(t.Context(), sku); e != ended || k != known {
				t.Errorf("%s: ended %t, known %t; want %t, %t", what, e, k, ended, known)
			}
		}
		become := func(state State) {
			s.say(func(st *Stock) { st.State, st.Ver = state, st.Ver+1 })
			d.Learn(testSKU, s.skus[testSKU].stock.StockVersion)
		}
		s.set(func(string, bool) error { return errors.New("redis is away") })
		want("Redis is away", testSKU, false, false)
		s.set(nil)
		s.say(func(st *Stock) { st.State, st.Ver = Ended, st.Ver+1 })
		want("it has ended before", testSKU, true, true)
		become(Frozen)
		want("it is frozen", testSKU, false, false)
		become(On)
		want("it is on sale", testSKU, false, true)
		want("there is no ledger", "another", false, true)
		before := s.count("look")
		want("there is no ledger still", "another", false, true)
		want("it is on sale still", testSKU, false, true)
		testkit.Want(t, "looks", s.count("look")-before, 0)
	})
}
