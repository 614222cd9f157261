package ledger

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatIsShownIsAtMostSoOldAndCostsOneLookForAll(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 10)
		d := opened(t, deskOptions(), s, nil)
		if _, ok := d.Show(d.o.Now(), []byte(sku)); ok {
			t.Fatal("a SKU is shown that nobody has met")
		}
		d.Watch(sku)
		time.Sleep(time.Second)
		d.Show(d.o.Now(), []byte(sku))
		synctest.Wait()
		if got, ok := d.Show(d.o.Now(), []byte(sku)); !ok || got.Free != 10 || got.Held != 0 {
			t.Fatalf("%+v, %v", got, ok)
		}
		before := s.count("look")
		s.say(func(st *Stock) { st.Sold, st.Free, st.Ver = 4, 6, st.Ver+1 })
		for range 1000 {
			d.Show(d.o.Now(), []byte(sku))
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if got, _ := d.Show(d.o.Now(), []byte(sku)); got.Free != 6 {
			t.Errorf("others have sold 4: %+v", got)
		}
		if n := s.count("look") - before; n > 2 {
			t.Errorf("%d looks in a second", n)
		}
	})
}

func TestInventedSKUsAreNotShownAndCostNothing(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 10)
		d := opened(t, deskOptions(), s, nil)
		for i := range 1000 {
			if _, ok := d.Show(d.o.Now(), fmt.Append(nil, "invented-", i)); ok {
				t.Fatal("shown")
			}
		}
		synctest.Wait()
		want(t, "lines", len(d.lines.each()), 0)
		want(t, "looks", s.count("look"), 0)
	})
}

func TestShopThatSaysSoldOutIsLeftAloneAndWinnersAreNotLiedTo(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 10)
		o := deskOptions()
		o.Looks = 2
		d := opened(t, o, s, nil)
		wants(t, "the winner", d.buy("ann", "key-of-ann"), Held)
		d.Shut(d.o.Now(), []byte(sku))
		before := s.asked()
		for range 100 {
			wants(t, "who could not have won", d.buy("", ""), SoldOut)
		}
		want(t, "calls", s.asked()-before, 0)
		wants(t, "the winner's retry", d.buy("ann", "key-of-ann"), ReplayHeld)
		tried := 0
		for i := range 100 {
			switch out := d.buy(fmt.Sprint("u", i), fmt.Sprint("k", i)); out.Code {
			case Held:
				tried++
			case Overloaded:
			default:
				t.Fatalf("who may have won elsewhere hears %v", out)
			}
		}
		if tried > 2 {
			t.Errorf("%d orders went on at once", tried)
		}
		time.Sleep(time.Second)
		wants(t, "after sold_out_memory", d.buy("bob", "key-of-bob"), Held)
	})
}

func TestHoursAreKeptByTheSharedClock(t *testing.T) {
	at(t, func(t *testing.T) {
		s := shelfOf(sku, 10)
		opens := time.Now().Add(10 * time.Second)
		must[Stock](t)(s.SetHours(t.Context(), sku, opens.UnixMilli(), 0))
		o := deskOptions()
		o.Wall = func() time.Time { return time.Now().Add(400 * time.Millisecond) } // the shared clock is ahead of this machine's
		d := opened(t, o, s, nil)
		wants(t, "early", d.buy("ann", ""), NotOnSale)
		time.Sleep(9600*time.Millisecond - 1)
		wants(t, "almost", d.buy("ann", ""), NotOnSale)
		time.Sleep(time.Nanosecond)
		wants(t, "at the very moment", d.buy("ann", ""), Held)
	})
}
