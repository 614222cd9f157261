package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// fallen is a ledger of 1001 with 9 units whose tail was lost: two instances, of which the first sold "a" before and
// "a2" in the tail, and the second "b" and "b2". Both speak to the replica now, which freezes at the first call.
func fallen(t *testing.T, lost func(a, b *Store)) (a, b *Store, x *exchange, p *pair) {
	t.Helper()
	p = newPair(t)
	x = exchangeTo(t, p.master)
	a, b = p.through(x), p.through(x)
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, a, "a")
	takes(t, b, "b")
	p.cut()
	takes(t, a, "a2")
	takes(t, b, "b2")
	if lost != nil {
		lost(a, b)
	}
	x.turn(p.replica.Addr)
	testkit.Eventually(t, "it freezes", func() bool {
		_, h := takes(t, a, "new")
		return h.State == Frozen
	})
	return a, b, x, p
}

// tells lets r tell 1001 what it knows.
func tells(t *testing.T, r *Store) (s Result) {
	t.Helper()
	testkit.Eventually(t, "it tells", func() (ok bool) {
		var err error
		s, err = r.Recover(t.Context(), "1001", time.Now().UnixMilli(), time.Now().Add(time.Hour).UnixMilli())
		return err == nil
	})
	return s
}

func statusOf(t *testing.T, r *Store, serial string) string {
	t.Helper()
	record, ok, err := r.Find(t.Context(), "1001", serial)
	testkit.Check(t, err)
	if !ok {
		return "none"
	}
	return string(record.Status)
}

func TestRecover_FrozenSKUOpensWhenEveryInstanceHasTold(t *testing.T) {
	t.Parallel()
	a, b, _, _ := fallen(t, nil)
	testkit.Want(t, "the tail", statusOf(t, a, "a2"), "none")
	s := tells(t, a)
	testkit.Want(t, "while the other is silent", s.State, Frozen)
	testkit.Want(t, "waits", fmt.Sprint(s.Waits), fmt.Sprint([]string{b.instance}))
	testkit.Want(t, "put back", statusOf(t, a, "a2"), "H")
	takes(t, b, "new")
	// it hears of the epoch
	testkit.Want(t, "the first has not told what it did to others' orders", tells(t, b).State, Frozen)
	s = tells(t, a)
	testkit.Want(t, "opened", s.Opened, true)
	testkit.Want(t, "state", s.State, On)
	for _, serial := range []string{"a", "a2", "b", "b2"} {
		testkit.Want(t, serial, statusOf(t, b, serial), "H")
	}
	testkit.Want(t, "held", s.Held, 4)
	testkit.Want(t, "nothing is left to tell", len(a.Pending())+len(b.Pending()), 1)
	testkit.Want(t, "over", tells(t, b).Over, true)
	testkit.Want(t, "nothing is left to tell", len(a.Pending())+len(b.Pending()), 0)
	code, _ := takes(t, a, "new")
	testkit.Want(t, "then", code, Held)
	for field := range testkit.Must[map[string]string](t)(hashAt(t, a)) {
		if strings.HasPrefix(field, "rc:") {
			t.Errorf("%s is left", field)
		}
	}
}

func TestRecover_SKUThatFrozeByAClockThatRanAheadOpens(t *testing.T) {
	t.Parallel()
	a, b, _, p := fallen(t, nil)
	tomorrow := time.Now().Add(24 * time.Hour).UnixMilli()
	testkit.Check(t, p.replica.Client.HSet(t.Context(), hashOf1001, "since", tomorrow).Err())
	takes(t, b, "new")
	testkit.Eventually(t, "it is open", func() bool {
		return tells(t, a).State == On || tells(t, b).State == On
	})
}

func TestRecover_WhatWasDoneInTheTailIsDoneAgain(t *testing.T) {
	t.Parallel()
	a, b, _, _ := fallen(t, func(a, b *Store) {
		testkit.Want(t, "by who sold it", finishOne(t, a, Confirm, "a2"), Changed)
		testkit.Want(t, "by another", finishOne(t, a, Confirm, "b2"), Changed)
		testkit.Want(t, "given back", finishOne(t, b, Release, "b"), Changed)
		testkit.Want(t, "by another, then back", finishOne(t, b, Confirm, "a"), Changed)
		testkit.Want(t, "back", finishOne(t, b, Refund, "a"), Changed)
		testkit.Want(t, "adopted", finishOne(t, b, Adopt, "shop"), Changed)
	})
	takes(t, b, "new")
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	for serial, status := range map[string]string{"a": "R", "a2": "C", "b": "X", "b2": "C", "shop": "C"} {
		testkit.Want(t, serial, statusOf(t, a, serial), status)
	}
	s := stockIn(t, a)
	testkit.Want(t, "state", s.State, On)
	testkit.Want(t, "held", s.Held, 0)
	testkit.Want(t, "sold", s.Sold, 3)
}

// A key that a client uses for another cart must not hear of the cart whose line was lost.
func TestRecover_LineOfTheTailHasItsCartAgain(t *testing.T) {
	t.Parallel()
	line := func(r *Store, cart string) Code {
		codes := make([]Code, 1)
		items := []Item{{Serial: "line", Quantity: 2, Cart: cart}}
		_, err := r.Reserve(t.Context(), "1001", 0, 1, 9_000, items, codes)
		testkit.Check(t, err)
		return codes[0]
	}
	a, b, _, _ := fallen(t, func(a, _ *Store) { testkit.Want(t, "in the tail", line(a, "c1"), Held) })
	takes(t, b, "new")
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	testkit.Want(t, "the same cart", line(b, "c1"), ReplayHeld)
	testkit.Want(t, "another cart", line(b, "c2"), OtherOrder)
	testkit.Want(t, "an order of one SKU", line(b, ""), OtherOrder)
}

// An order that the shop confirms while its hold is lost must not be held for ever.
func TestRecover_SettlingWhileFrozenIsNotLost(t *testing.T) {
	t.Parallel()
	a, b, _, _ := fallen(t, nil)
	testkit.Want(t, "not known now", finishOne(t, a, Confirm, "a2"), NotFound)
	takes(t, b, "new")
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	testkit.Want(t, "a2", statusOf(t, a, "a2"), "C")
	testkit.Want(t, "b2", statusOf(t, a, "b2"), "H")
}

// A shop contradicts itself: it rejects an order, and has it after all. Redis loses the release, and later the
// confirmation: the order stays what the ledger said last. An order that was refunded stays so.
func TestRecover_OrderThatTheShopHasAfterAllStaysSoldThroughTwoLosses(t *testing.T) {
	t.Parallel()
	for op, want := range map[Op]string{Release: "C", Refund: "R"} {
		t.Run(string(op), func(t *testing.T) {
			server, r := onRedis(t)
			r.Settle = 0
			takes(t, r, "order")
			recovers := func(what string) {
				testkit.Eventually(t, what, func() bool { return tells(t, r).State == On })
			}
			loses := func(to snapshot) {
				to.restore(t, server)
				testkit.Want(t, "after the loss", takeUnit(t, r, "new", "zoe"), NotOnSale)
			}
			kept := snapshotOf(t, server, "1001")
			testkit.Want(t, "given back", finishOne(t, r, op, "order"), Changed)
			loses(kept)
			kept = snapshotOf(t, server, "1001")
			testkit.Want(t, "the shop has it", finishOne(t, r, Confirm, "order"), Changed)
			recovers("it is open")
			testkit.Want(t, "after one loss", statusOf(t, r, "order"), want)
			loses(kept)
			recovers("it is open again")
			testkit.Want(t, "after two losses", statusOf(t, r, "order"), want)
		})
	}
}

func TestRecover_InstanceThatIsGoneKeepsTheSKUFrozen(t *testing.T) {
	t.Parallel()
	a, b, _, _ := fallen(t, nil)
	for range 5 {
		s := tells(t, a)
		testkit.Want(t, "state", s.State, Frozen)
		testkit.Want(t, "waits", len(s.Waits), 1)
	}
	testkit.Want(t, "adopted by hand", finishOne(t, a, Adopt, "b2"), Changed)
	testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", On))
	code, _ := takes(t, a, "new")
	testkit.Want(t, "opened by hand", code, Held)
	code, _ = takes(t, b, "late")
	testkit.Want(t, "the other comes after all", code, Held)
	tells(t, b)
	testkit.Want(t, "what it knows is sold already", statusOf(t, b, "b2"), "C")
}

// The clock of Redis jumps by an hour, and another loss freezes the SKU again: an instance that has not called since
// then looks as if it were gone for long, and may know of sold units.
func TestRecover_SKUThatFreezesAgainWaitsOnForThoseWhoHaveToldNothing(t *testing.T) {
	t.Parallel()
	a, b, _, p := fallen(t, nil)
	tells(t, a)
	mark := strings.Split(p.replica.Client.HGet(t.Context(), hashOf1001, "m:"+b.instance).Val(), "|")
	testkit.Want(t, "parts of a mark", len(mark), 3)
	mark[1] = fmt.Sprint(time.Now().Add(-time.Hour).UnixMilli())
	testkit.Check(t, p.replica.Client.HSet(t.Context(), hashOf1001, "m:"+b.instance, strings.Join(mark, "|")).Err())
	testkit.Check(t, p.replica.Client.HIncrBy(t.Context(), hashOf1001, "ver", -1).Err())
	epoch := stockIn(t, a).Epoch
	takes(t, a, "new")
	testkit.Want(t, "frozen again", stockIn(t, a).Epoch, epoch+1)
	for range 3 {
		s := tells(t, a)
		testkit.Want(t, "state", s.State, Frozen)
		testkit.Want(t, "waits", fmt.Sprint(s.Waits), fmt.Sprint([]string{b.instance}))
	}
}

// The clock of Redis jumps by an hour. Who has called before the jump alone is waited for all the same.
func TestRecover_JumpOfTheClockMakesNoInstanceLookAsIfItWereGone(t *testing.T) {
	t.Parallel()
	server, a := onRedis(t)
	b := connect(t, server, texts())
	a.Settle = 0
	takes(t, a, "a")
	takes(t, b, "b")
	for _, r := range []*Store{a, b} { // they called an hour ago by the clock of now
		mark := strings.Split(server.Client.HGet(t.Context(), hashOf1001, "m:"+r.instance).Val(), "|")
		testkit.Want(t, "parts of a mark", len(mark), 3)
		mark[1] = fmt.Sprint(time.Now().Add(-time.Hour).UnixMilli())
		testkit.Check(t, server.Client.HSet(t.Context(), hashOf1001, "m:"+r.instance, strings.Join(mark, "|")).Err())
	}
	takes(t, a, "behind the jump")
	testkit.Check(t, server.Client.HIncrBy(t.Context(), hashOf1001, "ver", -1).Err())
	takes(t, a, "new")
	for range 3 {
		s := tells(t, a)
		testkit.Want(t, "state", s.State, Frozen)
		testkit.Want(t, "waits", fmt.Sprint(s.Waits), fmt.Sprint([]string{b.instance}))
	}
}

// All that an instance ever wrote for the SKU may be in the tail: then no roll has its name.
func TestRecover_InstanceThatTheRollMissedIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	x := exchangeTo(t, p.master)
	a, late := p.through(x), p.through(x)
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, a, "a")
	p.cut()
	takes(t, late, "tail")
	takes(t, a, "a2")
	x.turn(p.replica.Addr)
	takes(t, a, "new")
	takes(t, late, "new")
	testkit.Want(t, "waits", fmt.Sprint(tells(t, a).Waits), fmt.Sprint([]string{late.instance}))
	tells(t, late)
	tells(t, a)
	tells(t, late)
	testkit.Want(t, "tail", statusOf(t, a, "tail"), "H")
	testkit.Want(t, "state", stockIn(t, a).State, On)
}

// A master takes over without the tail of one instance, which is dead. Before that is noticed the former master, which
// has copied the present one, is master again: neither trusts the stock.
func TestRecover_FormerMasterThatIsMasterAgainIsVerified(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	x := exchangeTo(t, p.master)
	a, dead := p.through(x), p.through(x)
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, a, "a")
	takes(t, dead, "b")
	p.cut()
	takes(t, dead, "tail")
	x.turn(p.replica.Addr)
	code, _ := takes(t, a, "at the other")
	testkit.Want(t, "at the other", code, NotOnSale)
	p.master, p.replica = p.replica, p.master
	p.follow()
	p.failOver(x)
	code, h := takes(t, a, "at the first")
	testkit.Want(t, "at the first", code, NotOnSale)
	testkit.Want(t, "state", h.State, Verifying)
	takes(t, dead, "it lives")
	testkit.Want(t, "its order is missed", stockIn(t, a).State, Frozen)
}

// At each fail-over every instance calls all that it has seen, also a server that it has known, and about a SKU that no
// client asks it about.
func TestRecover_InstancesVisitAServerThatTheyHaveKnown(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	x := exchangeTo(t, p.master)
	a, b := p.through(x), p.through(x)
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 99, 0))
	testkit.Must[Stock](t)(b.SetTotal(t.Context(), "another", 1, 0))
	takes(t, a, "a")
	takes(t, b, "b")
	for i := range 4 {
		p.failOver(x)
		testkit.Eventually(t, fmt.Sprint("sale after fail-over ", i), func() bool {
			_, _, err := b.ReadStock(t.Context(), "another")
			code, h := takes(t, a, fmt.Sprint(i))
			if h.State == Frozen { // a visit was on its way to the server before
				tells(t, a)
				tells(t, b)
			}
			return err == nil && (code == Held || code == ReplayHeld)
		})
	}
}

func TestSetState_ResumedSKUOfAnotherServerIsVerifiedFirst(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	restart(t, server)
	_, h := takes(t, a, "new")
	testkit.Want(t, "state", h.State, Verifying)
	testkit.Want(t, "paused", testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", Paused)).State, Paused)
	testkit.Want(t, "resumed", testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", On)).State, Verifying)
	takes(t, b, "b")
	code, _ := takes(t, a, "new")
	testkit.Want(t, "once all have called", code, Held)
}

// What an instance did after it told all is lost with the server that it told. Another server opens the SKU: it sells
// nothing until that instance has called it.
func TestRecover_ServerThatOpensASKUIsStillVerified(t *testing.T) {
	t.Parallel()
	server, a := durable(t)
	b := single(t, server)
	a.Settle, b.Settle = 0, time.Hour
	takes(t, a, "a")
	takes(t, b, "b")
	testkit.Want(t, "sold", finishOne(t, a, Confirm, "a"), Changed)
	testkit.Check(t, server.Client.HIncrBy(t.Context(), hashOf1001, "ver", -1).Err())
	takes(t, a, "new")
	takes(t, b, "new")
	tells(t, b)
	tells(t, a)
	tells(t, b)
	kept := snapshotOf(t, server, "1001")
	testkit.Want(t, "given back by b", finishOne(t, b, Refund, "a"), Changed)
	kept.restore(t, server)
	restart(t, server)
	testkit.Want(t, "opened", tells(t, a).Opened, true)
	code, h := takes(t, a, "new")
	testkit.Want(t, "code", code, NotOnSale)
	testkit.Want(t, "state", h.State, Verifying)
}

func TestRecovery_InstanceThatComesAfterTheSKUHasOpenedStillReports(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	x := exchangeTo(t, p.master)
	a, late := p.through(x), p.through(x)
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 3, 0))
	takes(t, a, "a")
	p.cut()
	takes(t, late, "tail")
	takes(t, a, "a2")
	x.turn(p.replica.Addr)
	takes(t, a, "new")
	tells(t, a)
	for _, serial := range []string{"1", "2"} {
		takes(t, a, serial)
	}
	testkit.Want(t, "state", stockIn(t, a).State, On)
	takes(t, late, "new")
	s := tells(t, late)
	testkit.Want(t, "over", s.Over, true)
	testkit.Want(t, "tail", statusOf(t, a, "tail"), "H")
	testkit.Want(t, "free", s.Free, -1) // an alarm, and not silence
}

func TestRecover_WhatAnOperatorFrozeOrPausedStaysSo(t *testing.T) {
	t.Parallel()
	for was, then := range map[State]State{Paused: Paused,
		Ended: Ended, Frozen: Frozen} {
		p := newPair(t)
		x := exchangeTo(t, p.master)
		a := p.through(x)
		testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
		testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", was))
		p.cut()
		finishOne(t, a, Adopt, "tail")
		x.turn(p.replica.Addr)
		takes(t, a, "new")
		tells(t, a)
		tells(t, a)
		s := stockIn(t, a)
		testkit.Want(t, "state", s.State, then)
		testkit.Want(t, "sold", s.Sold, 1)
	}
}

// A master that was paused comes back after its replica has taken over: what it holds is older than what was seen.
func TestRecover_OldMasterThatComesBackSellsNothing(t *testing.T) {
	t.Parallel()
	a, b, x, p := fallen(t, nil)
	takes(t, b, "new")
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	testkit.Want(t, "the new one", stockIn(t, a).State, On)
	y := exchangeTo(t, p.master)
	x.turn(y.Addr)
	for _, r := range []*Store{a, b} {
		for i := range 3 {
			code, h := takes(t, r, fmt.Sprint("old", i))
			testkit.Want(t, "on the old one", code, NotOnSale)
			testkit.Want(t, "state", h.State, Frozen)
			s := tells(t, r)
			testkit.Want(t, "told", s.State, Frozen)
		}
	}
	x.turn(p.replica.Addr)
	testkit.Eventually(t, "the new one sells on", func() bool {
		for _, r := range []*Store{a, b} {
			takes(t, r, "back")
			tells(t, r)
		}
		return stockIn(t, a).State == On
	})
}

// A ledger that is made again has the orders of before: its instances tell them, and an operator opens it.
func TestRecover_RecreatedLedgerIsToldOfTheOrdersOfBefore(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	other := connect(t, server, texts())
	takes(t, other, "c")
	before := stockIn(t, r)
	testkit.Check(t, server.Client.FlushAll(t.Context()).Err())
	takes(t, r, "new")
	s := testkit.Must[Stock](t)(r.Recreate(t.Context(), "1001", 9, 2, false))
	testkit.Want(t, "state", s.State, Frozen)
	testkit.Must[Stock](t)(r.Recreate(t.Context(), "1001", 9, 2, false)) // it goes on
	testkit.Must[[]Record](t)(other.Sweep(t.Context(), "1001", 1, 2, 1))
	testkit.Want(t, "untold", stockIn(t, r).Untold, 1)
	for range 3 {
		tells(t, r)
		tells(t, other)
	}
	s = stockIn(t, r)
	testkit.Want(t, "held and sold", s.Held+s.Sold, before.Held+before.Sold)
	testkit.Want(t, "c", statusOf(t, r, "c"), "H")
	testkit.Want(t, "state", s.State, Frozen)
	testkit.Want(t, "untold", s.Untold, 0)
	testkit.Must[Stock](t)(r.SetState(t.Context(), "1001", On))
	code, _ := takes(t, r, "then")
	testkit.Want(t, "then", code, Held)
	if _, err := r.Recreate(t.Context(), "1001", 9, 2, false); !errors.Is(err, ErrExists) {
		t.Errorf("a whole ledger: %v", err)
	}
}

// A command may make a ledger before an instance has said that there was one. That instance closes it.
func TestRecover_LedgerMadeAsIfItHadNeverBeenFreezes(t *testing.T) {
	server, r := onRedis(t)
	testkit.Check(t, server.Client.FlushAll(t.Context()).Err())
	time.Sleep(2 * time.Millisecond) // epochs are milliseconds
	testkit.Must[Stock](t)(connect(t, server, texts()).SetTotal(t.Context(), "1001", 9, 0))
	code, h := takes(t, r, "new")
	testkit.Want(t, "code", code, NotOnSale)
	testkit.Want(t, "state", h.State, Frozen)
	for range 3 {
		s := tells(t, r)
		testkit.Want(t, "by hand", s.ByHand(), true)
	}
	testkit.Want(t, "what it knows", statusOf(t, r, "a"), "H")
}

func TestRecover_PartlyDeletedLedgerIsNotSetButRecreated(t *testing.T) {
	t.Parallel()
	for i, key := range []string{"s", "r", "u", "x"} {
		server, r := onRedis(t)
		before := stockIn(t, r)
		testkit.Check(t, server.Client.Del(t.Context(), keys("1001")[i]).Err())
		visitor := connect(t, server, texts())
		_, err := visitor.SetTotal(t.Context(), "1001", 9, 0)
		if err == nil || !strings.Contains(err.Error(), "sluice stock recover 1001") {
			t.Fatalf("%s: %v", key, err)
		}
		_, err = visitor.Recreate(t.Context(), "1001", 9, 0, true)
		if key != "r" && !errors.Is(err, ErrOrdersLeft) {
			t.Errorf("%s: without orders, though there are records: %v", key, err)
		}
		s, err := visitor.Recreate(t.Context(), "1001", 9, 0, false)
		if err != nil || s.State != Frozen {
			t.Fatalf("%s: %+v, %v", key, s, err)
		}
		testkit.Must[[]Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
		for range 3 {
			tells(t, r)
		}
		s = stockIn(t, r)
		testkit.Want(t, key+": held and sold", s.Held+s.Sold, before.Held+before.Sold)
	}
}

func TestRecover_OperatorsFreezeIsNotOpenedByAnybodyElse(t *testing.T) {
	t.Parallel()
	_, r := onRedis(t)
	r.Settle = 0
	testkit.Must[Stock](t)(r.SetState(t.Context(), "1001", Frozen))
	s := tells(t, r)
	testkit.Want(t, "state", s.State, Frozen)
	testkit.Want(t, "over", s.Over, true)
	testkit.Want(t, "by hand", s.ByHand(), true)
	testkit.Want(t, "state", stockIn(t, r).State, Frozen)
}

func hashAt(t *testing.T, r *Store) (fields map[string]string, err error) {
	err = r.link.Do(t.Context(), func(ctx context.Context, c redisconn.Commands) error {
		fields, err = c.HGetAll(ctx, hashOf1001).Result()
		return err
	}, storeFault)
	return fields, err
}

// Who leaves in good order while a SKU is frozen tells all before: nobody else could.
func TestRecover_InstanceThatLeavesTellsBefore(t *testing.T) {
	t.Parallel()
	a, b, _, _ := fallen(t, nil)
	takes(t, b, "new")
	testkit.Check(t, b.Close())
	tells(t, a)
	tells(t, a)
	testkit.Want(t, "b2", statusOf(t, a, "b2"), "H")
	testkit.Want(t, "state", stockIn(t, a).State, On)
}

// What who leaves has given back of another's order stays so, although the other tells the order as sold only then.
func TestRecover_RefundOfWhoHasLeftOutlivesTheOrdersOwnWitness(t *testing.T) {
	t.Parallel()
	a, b, _, _ := fallen(t, func(a, b *Store) {
		testkit.Want(t, "sold", finishOne(t, a, Confirm, "a2"), Changed)
		testkit.Want(t, "given back by another", finishOne(t, b, Refund, "a2"), Changed)
	})
	takes(t, b, "new")
	testkit.Check(t, b.Close())
	tells(t, a)
	tells(t, a)
	testkit.Want(t, "a2", statusOf(t, a, "a2"), "R")
	s := stockIn(t, a)
	testkit.Want(t, "state", s.State, On)
	testkit.Want(t, "sold", s.Sold, 0)
	testkit.Want(t, "held", s.Held, 3)
}
