package ledger

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

func TestStatus_WhatIsShownIsAtMostSoOldAndCostsOneLookForAll(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(ledgertest.SKU, 10)
		d := opened(t, testOptions(), s, nil)
		if _, ok := d.Status(d.o.Now(), []byte(ledgertest.SKU)); ok {
			t.Fatal("a SKU is shown that was never asked for")
		}
		d.Track(ledgertest.SKU)
		time.Sleep(time.Second)
		d.Status(d.o.Now(), []byte(ledgertest.SKU))
		synctest.Wait()
		if got, ok := d.Status(d.o.Now(), []byte(ledgertest.SKU)); !ok || got.Free != 10 || got.Held != 0 {
			t.Fatalf("%+v, %v", got, ok)
		}
		before := s.count("look")
		s.say(func(st *protocol.Stock) { st.Sold, st.Free, st.Ver = 4, 6, st.Ver+1 })
		for range 1000 {
			d.Status(d.o.Now(), []byte(ledgertest.SKU))
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if got, _ := d.Status(d.o.Now(), []byte(ledgertest.SKU)); got.Free != 6 {
			t.Errorf("others have sold 4: %+v", got)
		}
		if n := s.count("look") - before; n > 2 {
			t.Errorf("%d looks in a second", n)
		}
	})
}

func TestStatus_InventedSKUsAreNotShownAndCostNothing(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(ledgertest.SKU, 10)
		d := opened(t, testOptions(), s, nil)
		for i := range 1000 {
			if _, ok := d.Status(d.o.Now(), fmt.Append(nil, "invented-", i)); ok {
				t.Fatal("shown")
			}
		}
		synctest.Wait()
		ledgertest.Want(t, "lines", len(d.skus.All()), 0)
		ledgertest.Want(t, "looks", s.count("look"), 0)
	})
}

func TestStatus_ShopThatSaysSoldOutIsLeftAloneAndWinnersAreNotLiedTo(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(ledgertest.SKU, 10)
		d := opened(t, testOptions(), s, nil)
		wants(t, "the winner", d.buy("ann", "key-of-ann"), protocol.Held)
		d.MarkSoldOut(d.o.Now(), []byte(ledgertest.SKU))
		before := s.count("reserve")
		for range 100 {
			wants(t, "an order without a name", d.buy("", ""), protocol.SoldOut)
		}
		wants(t, "the winner's retry", d.buy("ann", "key-of-ann"), protocol.ReplayHeld)
		for i := range 15 {
			wants(t, "a loser", d.buy(fmt.Sprint("u", i), fmt.Sprint("k", i)), protocol.SoldOut)
		}
		ledgertest.Want(t, "orders that the ledger heard of", s.count("reserve")-before, 0)
		time.Sleep(time.Second)
		wants(t, "after sold_out_ttl", d.buy("bob", "key-of-bob"), protocol.Held)
	})
}

func TestStatus_HoursAreKeptByTheSharedClock(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(ledgertest.SKU, 10)
		opens := time.Now().Add(10 * time.Second)
		ledgertest.Must[protocol.Stock](t)(s.SetSchedule(t.Context(), ledgertest.SKU, opens.UnixMilli(), 0))
		o := testOptions()
		// The shared clock is ahead of this machine's.
		o.Wall = func() time.Time { return time.Now().Add(400 * time.Millisecond) }
		d := opened(t, o, s, nil)
		wants(t, "early", d.buy("ann", ""), protocol.NotOnSale)
		time.Sleep(9600*time.Millisecond - 1)
		wants(t, "almost", d.buy("ann", ""), protocol.NotOnSale)
		time.Sleep(time.Nanosecond)
		wants(t, "at the very moment", d.buy("ann", ""), protocol.Held)
	})
}

// A page that asks right after a start is told what a ledger has.
func TestReadFirst_StatusKnowsTheLedgerAtOnce(t *testing.T) {
	at(t, func(t *testing.T) {
		s := fakeStoreOf(ledgertest.SKU, 10)
		d := opened(t, testOptions(), s, nil)
		d.ReadFirst(t.Context(), ledgertest.SKU)
		if got, ok := d.Status(d.o.Now(), []byte(ledgertest.SKU)); !ok || got.Free != 10 {
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
		s := fakeStoreOf(ledgertest.SKU, 10)
		d := opened(t, testOptions(), s, nil)
		want := func(what, sku string, ended, known bool) {
			t.Helper()
			if e, k := d.Ended(t.Context(), sku); e != ended || k != known {
				t.Errorf("%s: ended %t, known %t; want %t, %t", what, e, k, ended, known)
			}
		}
		become := func(state protocol.State) {
			s.say(func(st *protocol.Stock) { st.State, st.Ver = state, st.Ver+1 })
			d.Learn(ledgertest.SKU, s.skus[ledgertest.SKU].stock.StockVersion)
		}
		s.set(func(string, bool) error { return errors.New("redis is away") })
		want("Redis is away", ledgertest.SKU, false, false)
		s.set(nil)
		s.say(func(st *protocol.Stock) { st.State, st.Ver = protocol.Ended, st.Ver+1 })
		want("it has ended before", ledgertest.SKU, true, true)
		become(protocol.Frozen)
		want("it is frozen", ledgertest.SKU, false, false)
		become(protocol.On)
		want("it is on sale", ledgertest.SKU, false, true)
		want("there is no ledger", "another", false, true)
		before := s.count("look")
		want("there is no ledger still", "another", false, true)
		want("it is on sale still", ledgertest.SKU, false, true)
		ledgertest.Want(t, "looks", s.count("look")-before, 0)
	})
}
