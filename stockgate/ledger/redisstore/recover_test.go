package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// fallen is a ledger of 1001 with 9 units whose tail was lost: two instances, of which the first sold "a" before and
// "a2" in the tail, and the second "b" and "b2". Both speak to the replica now, which freezes at the first call.
func fallen(t *testing.T, lost func(a, b *Store)) (a, b *Store, x *exchange, p *pair) {
	t.Helper()
	p = newPair(t)
	x = exchangeTo(t, p.master)
	a, b = p.through(x), p.through(x)
	ledgertest.Must[protocol.Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, a, "a")
	takes(t, b, "b")
	p.cut()
	takes(t, a, "a2")
	takes(t, b, "b2")
	if lost != nil {
		lost(a, b)
	}
	x.turn(p.replica.Addr)
	ledgertest.Until(t, "it freezes", func() bool {
		_, h := takes(t, a, "new")
		return h.State == protocol.Frozen
	})
	return a, b, x, p
}

// tells lets r tell 1001 what it knows.
func tells(t *testing.T, r *Store) (s failover.Result) {
	t.Helper()
	ledgertest.Until(t, "it tells", func() (ok bool) {
		var err error
		s, err = r.Recover(t.Context(), "1001", time.Now().UnixMilli(), time.Now().Add(time.Hour).UnixMilli())
		return err == nil
	})
	return s
}

func statusOf(t *testing.T, r *Store, serial string) string {
	t.Helper()
	record, ok, err := r.Find(t.Context(), "1001", serial)
	ledgertest.Check(t, err)
	if !ok {
		return "none"
	}
	return string(record.Status)
}

func TestRecover_FrozenSKUOpensWhenEveryInstanceHasTold(t *testing.T) {
	a, b, _, _ := fallen(t, nil)
	ledgertest.Want(t, "the tail", statusOf(t, a, "a2"), "none")
	s := tells(t, a)
	ledgertest.Want(t, "while the other is silent", s.State, protocol.Frozen)
	ledgertest.Want(t, "waits", fmt.Sprint(s.Waits), fmt.Sprint([]string{b.instance}))
	ledgertest.Want(t, "put back", statusOf(t, a, "a2"), "H")
	takes(t, b, "new")
	ledgertest. // it hears of the epoch
			Want(t, "the first has not told what it did to others' orders", tells(t, b).State, protocol.Frozen)
	s = tells(t, a)
	ledgertest.Want(t, "opened", s.Opened, true)
	ledgertest.Want(t, "state", s.State, protocol.On)
	for _, serial := range []string{"a", "a2", "b", "b2"} {
		ledgertest.Want(t, serial, statusOf(t, b, serial), "H")
	}
	ledgertest.Want(t, "held", s.Held, 4)
	ledgertest.Want(t, "nothing is left to tell", len(a.Pending())+len(b.Pending()), 1)
	ledgertest.Want(t, "over", tells(t, b).Over, true)
	ledgertest.Want(t, "nothing is left to tell", len(a.Pending())+len(b.Pending()), 0)
	code, _ := takes(t, a, "new")
	ledgertest.Want(t, "then", code, protocol.Held)
	for field := range ledgertest.Must[map[string]string](t)(hashAt(t, a)) {
		if strings.HasPrefix(field, "rc:") {
			t.Errorf("%s is left", field)
		}
	}
}

func TestRecover_SKUThatFrozeByAClockThatRanAheadOpens(t *testing.T) {
	a, b, _, p := fallen(t, nil)
	tomorrow := time.Now().Add(24 * time.Hour).UnixMilli()
	ledgertest.Check(t, p.replica.Client.HSet(t.Context(), hashOf1001, "since", tomorrow).Err())
	takes(t, b, "new")
	ledgertest.Until(t, "it is open", func() bool {
		return tells(t, a).State == protocol.On || tells(t, b).State == protocol.On
	})
}

func TestRecover_WhatWasDoneInTheTailIsDoneAgain(t *testing.T) {
	a, b, _, _ := fallen(t, func(a, b *Store) {
		ledgertest.Want(t, "by who sold it", ledgertest.Finish(t, a, protocol.Confirm, "a2"), protocol.Changed)
		ledgertest.Want(t, "by another", ledgertest.Finish(t, a, protocol.Confirm, "b2"), protocol.Changed)
		ledgertest.Want(t, "given back", ledgertest.Finish(t, b, protocol.Release, "b"), protocol.Changed)
		ledgertest.Want(t, "by another, then back", ledgertest.Finish(t, b, protocol.Confirm, "a"), protocol.Changed)
		ledgertest.Want(t, "back", ledgertest.Finish(t, b, protocol.Refund, "a"), protocol.Changed)
		ledgertest.Want(t, "adopted", ledgertest.Finish(t, b, protocol.Adopt, "shop"), protocol.Changed)
	})
	takes(t, b, "new")
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	for serial, status := range map[string]string{"a": "R", "a2": "C", "b": "X", "b2": "C", "shop": "C"} {
		ledgertest.Want(t, serial, statusOf(t, a, serial), status)
	}
	s := ledgertest.StockOf(t, a)
	ledgertest.Want(t, "state", s.State, protocol.On)
	ledgertest.Want(t, "held", s.Held, 0)
	ledgertest.Want(t, "sold", s.Sold, 3)
}

// A key that a client uses for another cart must not hear of the cart whose line was lost.
func TestRecover_LineOfTheTailHasItsCartAgain(t *testing.T) {
	line := func(r *Store, cart string) protocol.Code {
		codes := make([]protocol.Code, 1)
		items := []protocol.Item{{Serial: "line", Quantity: 2, Cart: cart}}
		_, err := r.Reserve(t.Context(), "1001", 0, 1, 9_000, items, codes)
		ledgertest.Check(t, err)
		return codes[0]
	}
	a, b, _, _ := fallen(t, func(a, _ *Store) { ledgertest.Want(t, "in the tail", line(a, "c1"), protocol.Held) })
	takes(t, b, "new")
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	ledgertest.Want(t, "the same cart", line(b, "c1"), protocol.ReplayHeld)
	ledgertest.Want(t, "another cart", line(b, "c2"), protocol.OtherOrder)
	ledgertest.Want(t, "an order of one SKU", line(b, ""), protocol.OtherOrder)
}

// An order that the shop confirms while its hold is lost must not be held for ever.
func TestRecover_SettlingWhileFrozenIsNotLost(t *testing.T) {
	a, b, _, _ := fallen(t, nil)
	ledgertest.Want(t, "not known now", ledgertest.Finish(t, a, protocol.Confirm, "a2"), protocol.NotFound)
	takes(t, b, "new")
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	ledgertest.Want(t, "a2", statusOf(t, a, "a2"), "C")
	ledgertest.Want(t, "b2", statusOf(t, a, "b2"), "H")
}

// A shop contradicts itself: it rejects an order, and has it after all. Redis loses the release, and later the
// confirmation: the order stays what the ledger said last. An order that was refunded stays so.
func TestRecover_OrderThatTheShopHasAfterAllStaysSoldThroughTwoLosses(t *testing.T) {
	for op, want := range map[protocol.Op]string{protocol.Release: "C", protocol.Refund: "R"} {
		t.Run(string(op), func(t *testing.T) {
			server, r := onRedis(t)
			r.Settle = 0
			takes(t, r, "order")
			recovers := func(what string) {
				ledgertest.Until(t, what, func() bool { return tells(t, r).State == protocol.On })
			}
			loses := func(to snapshot) {
				to.restore(t, server)
				ledgertest.Want(t, "after the loss", ledgertest.Take(t, r, "new", "zoe"), protocol.NotOnSale)
			}
			kept := snapshotOf(t, server, "1001")
			ledgertest.Want(t, "given back", ledgertest.Finish(t, r, op, "order"), protocol.Changed)
			loses(kept)
			kept = snapshotOf(t, server, "1001")
			ledgertest.Want(t, "the shop has it", ledgertest.Finish(t, r, protocol.Confirm, "order"), protocol.Changed)
			recovers("it is open")
			ledgertest.Want(t, "after one loss", statusOf(t, r, "order"), want)
			loses(kept)
			recovers("it is open again")
			ledgertest.Want(t, "after two losses", statusOf(t, r, "order"), want)
		})
	}
}

func TestRecover_InstanceThatIsGoneKeepsTheSKUFrozen(t *testing.T) {
	a, b, _, _ := fallen(t, nil)
	for range 5 {
		s := tells(t, a)
		ledgertest.Want(t, "state", s.State, protocol.Frozen)
		ledgertest.Want(t, "waits", len(s.Waits), 1)
	}
	ledgertest.Want(t, "adopted by hand", ledgertest.Finish(t, a, protocol.Adopt, "b2"), protocol.Changed)
	ledgertest.Must[protocol.Stock](t)(a.SetState(t.Context(), "1001", protocol.On))
	code, _ := takes(t, a, "new")
	ledgertest.Want(t, "opened by hand", code, protocol.Held)
	code, _ = takes(t, b, "late")
	ledgertest.Want(t, "the other comes after all", code, protocol.Held)
	tells(t, b)
	ledgertest.Want(t, "what it knows is sold already", statusOf(t, b, "b2"), "C")
}

// All that an instance ever wrote for the SKU may be in the tail: then no roll has its name.
func TestRecover_InstanceThatTheRollMissedIsWaitedFor(t *testing.T) {
	p := newPair(t)
	x := exchangeTo(t, p.master)
	a, late := p.through(x), p.through(x)
	ledgertest.Must[protocol.Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, a, "a")
	p.cut()
	takes(t, late, "tail")
	takes(t, a, "a2")
	x.turn(p.replica.Addr)
	takes(t, a, "new")
	takes(t, late, "new")
	ledgertest.Want(t, "waits", fmt.Sprint(tells(t, a).Waits), fmt.Sprint([]string{late.instance}))
	tells(t, late)
	tells(t, a)
	tells(t, late)
	ledgertest.Want(t, "tail", statusOf(t, a, "tail"), "H")
	ledgertest.Want(t, "state", ledgertest.StockOf(t, a).State, protocol.On)
}

func TestRecovery_InstanceThatComesAfterTheSKUHasOpenedStillReports(t *testing.T) {
	p := newPair(t)
	x := exchangeTo(t, p.master)
	a, late := p.through(x), p.through(x)
	ledgertest.Must[protocol.Stock](t)(a.SetTotal(t.Context(), "1001", 3, 0))
	takes(t, a, "a")
	p.cut()
	takes(t, late, "tail")
	takes(t, a, "a2")
	x.turn(p.replica.Addr)
	takes(t, a, "new")
	tells(t, a)
	ledgertest.Want(t, "state", ledgertest.StockOf(t, a).State, protocol.On)
	for _, serial := range []string{"1", "2"} {
		takes(t, a, serial)
	}
	takes(t, late, "new")
	s := tells(t, late)
	ledgertest.Want(t, "over", s.Over, true)
	ledgertest.Want(t, "tail", statusOf(t, a, "tail"), "H")
	ledgertest.Want(t, "free", s.Free, -1) // an alarm, and not silence
}

func TestRecover_JournalThatIsTooShortDoesNotVouch(t *testing.T) {
	p := newPair(t)
	x := exchangeTo(t, p.master)
	a := p.through(x)
	a.Log = failover.NewOperationLog(2)
	ledgertest.Must[protocol.Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, a, "before")
	p.cut()
	for _, serial := range []string{"1", "2", "3"} {
		takes(t, a, serial)
	}
	x.turn(p.replica.Addr)
	takes(t, a, "new")
	for range 3 {
		s := tells(t, a)
		ledgertest.Want(t, "state", s.State, protocol.Frozen)
	}
	ledgertest.Want(t, "the oldest", statusOf(t, a, "1"), "none")
	ledgertest.Want(t, "the newest", statusOf(t, a, "3"), "H")
}

func TestRecover_WhatAnOperatorFrozeOrPausedStaysSo(t *testing.T) {
	for was, then := range map[protocol.State]protocol.State{protocol.Paused: protocol.Paused,
		protocol.Ended: protocol.Ended, protocol.Frozen: protocol.Frozen} {
		p := newPair(t)
		x := exchangeTo(t, p.master)
		a := p.through(x)
		ledgertest.Must[protocol.Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
		ledgertest.Must[protocol.Stock](t)(a.SetState(t.Context(), "1001", was))
		p.cut()
		ledgertest.Finish(t, a, protocol.Adopt, "tail")
		x.turn(p.replica.Addr)
		takes(t, a, "new")
		tells(t, a)
		tells(t, a)
		s := ledgertest.StockOf(t, a)
		ledgertest.Want(t, "state", s.State, then)
		ledgertest.Want(t, "sold", s.Sold, 1)
	}
}

// A master that was paused comes back after its replica has taken over: what it holds is older than what was seen.
func TestRecover_OldMasterThatComesBackSellsNothing(t *testing.T) {
	a, b, x, p := fallen(t, nil)
	takes(t, b, "new")
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	ledgertest.Want(t, "the new one", ledgertest.StockOf(t, a).State, protocol.On)
	y := exchangeTo(t, p.master)
	x.turn(y.Addr)
	for _, r := range []*Store{a, b} {
		for i := range 3 {
			code, h := takes(t, r, fmt.Sprint("old", i))
			ledgertest.Want(t, "on the old one", code, protocol.NotOnSale)
			ledgertest.Want(t, "state", h.State, protocol.Frozen)
			s := tells(t, r)
			ledgertest.Want(t, "told", s.State, protocol.Frozen)
		}
	}
	x.turn(p.replica.Addr)
	ledgertest.Until(t, "the new one sells on", func() bool {
		for _, r := range []*Store{a, b} {
			takes(t, r, "back")
			tells(t, r)
		}
		return ledgertest.StockOf(t, a).State == protocol.On
	})
}

// A ledger that is made again has the orders of before: its instances tell them, and an operator opens it.
func TestRecover_RecreatedLedgerIsToldOfTheOrdersOfBefore(t *testing.T) {
	server, r := onRedis(t)
	other := connect(t, server, texts())
	takes(t, other, "c")
	before := ledgertest.StockOf(t, r)
	ledgertest.Check(t, server.Client.FlushAll(t.Context()).Err())
	takes(t, r, "new")
	s := ledgertest.Must[protocol.Stock](t)(r.Recreate(t.Context(), "1001", 9, 2, false))
	ledgertest.Want(t, "state", s.State, protocol.Frozen)
	ledgertest.Must[protocol.Stock](t)(r.Recreate(t.Context(), "1001", 9, 2, false)) // it goes on
	ledgertest.Must[[]protocol.Record](t)(other.Sweep(t.Context(), "1001", 1, 2, 1))
	ledgertest.Want(t, "untold", ledgertest.StockOf(t, r).Untold, 1)
	for range 3 {
		tells(t, r)
		tells(t, other)
	}
	s = ledgertest.StockOf(t, r)
	ledgertest.Want(t, "held and sold", s.Held+s.Sold, before.Held+before.Sold)
	ledgertest.Want(t, "c", statusOf(t, r, "c"), "H")
	ledgertest.Want(t, "state", s.State, protocol.Frozen)
	ledgertest.Want(t, "untold", s.Untold, 0)
	ledgertest.Must[protocol.Stock](t)(r.SetState(t.Context(), "1001", protocol.On))
	code, _ := takes(t, r, "then")
	ledgertest.Want(t, "then", code, protocol.Held)
	if _, err := r.Recreate(t.Context(), "1001", 9, 2, false); !errors.Is(err, protocol.ErrExists) {
		t.Errorf("a whole ledger: %v", err)
	}
}

// A command may make a ledger before an instance has said that there was one. That instance closes it.
func TestRecover_LedgerMadeAsIfItHadNeverBeenFreezes(t *testing.T) {
	server, r := onRedis(t)
	ledgertest.Check(t, server.Client.FlushAll(t.Context()).Err())
	time.Sleep(2 * time.Millisecond) // epochs are milliseconds
	ledgertest.Must[protocol.Stock](t)(connect(t, server, texts()).SetTotal(t.Context(), "1001", 9, 0))
	code, h := takes(t, r, "new")
	ledgertest.Want(t, "code", code, protocol.NotOnSale)
	ledgertest.Want(t, "state", h.State, protocol.Frozen)
	for range 3 {
		s := tells(t, r)
		ledgertest.Want(t, "by hand", s.ByHand(), true)
	}
	ledgertest.Want(t, "what it knows", statusOf(t, r, "a"), "H")
}

func TestRecover_PartlyDeletedLedgerIsNotSetButRecreated(t *testing.T) {
	for i, key := range []string{"s", "r", "u", "x"} {
		server, r := onRedis(t)
		before := ledgertest.StockOf(t, r)
		ledgertest.Check(t, server.Client.Del(t.Context(), keys("1001")[i]).Err())
		visitor := connect(t, server, texts())
		_, err := visitor.SetTotal(t.Context(), "1001", 9, 0)
		if err == nil || !strings.Contains(err.Error(), "sluice stock recover 1001") {
			t.Fatalf("%s: %v", key, err)
		}
		_, err = visitor.Recreate(t.Context(), "1001", 9, 0, true)
		if key != "r" && !errors.Is(err, protocol.ErrOrdersLeft) {
			t.Errorf("%s: without orders, though there are records: %v", key, err)
		}
		s, err := visitor.Recreate(t.Context(), "1001", 9, 0, false)
		if err != nil || s.State != protocol.Frozen {
			t.Fatalf("%s: %+v, %v", key, s, err)
		}
		ledgertest.Must[[]protocol.Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
		for range 3 {
			tells(t, r)
		}
		s = ledgertest.StockOf(t, r)
		ledgertest.Want(t, key+": held and sold", s.Held+s.Sold, before.Held+before.Sold)
	}
}

func TestRecover_OperatorsFreezeIsNotOpenedByAnybodyElse(t *testing.T) {
	_, r := onRedis(t)
	r.Settle = 0
	ledgertest.Must[protocol.Stock](t)(r.SetState(t.Context(), "1001", protocol.Frozen))
	s := tells(t, r)
	ledgertest.Want(t, "state", s.State, protocol.Frozen)
	ledgertest.Want(t, "over", s.Over, true)
	ledgertest.Want(t, "by hand", s.ByHand(), true)
	ledgertest.Want(t, "state", ledgertest.StockOf(t, r).State, protocol.Frozen)
}

func hashAt(t *testing.T, r *Store) (fields map[string]string, err error) {
	err = r.link.Do(t.Context(), func(ctx context.Context, c *redis.Client) error {
		fields, err = c.HGetAll(ctx, hashOf1001).Result()
		return err
	}, fault)
	return fields, err
}

// Who leaves in good order while a SKU is frozen tells all before: nobody else could.
func TestRecover_InstanceThatLeavesTellsBefore(t *testing.T) {
	a, b, _, _ := fallen(t, nil)
	takes(t, b, "new")
	ledgertest.Check(t, b.Close())
	tells(t, a)
	tells(t, a)
	ledgertest.Want(t, "b2", statusOf(t, a, "b2"), "H")
	ledgertest.Want(t, "state", ledgertest.StockOf(t, a).State, protocol.On)
}
