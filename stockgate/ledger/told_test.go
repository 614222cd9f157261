package ledger

import (
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// losesTail lets Redis lose the last order of a, and a find that out.
func losesTail(t *testing.T, server *redistest.Server, a *Store) {
	t.Helper()
	kept := snapshotOf(t, server, "1001")
	takes(t, a, "tail")
	kept.restore(t, server)
	_, h := takes(t, a, "new")
	testkit.Want(t, "state", h.State, Frozen)
}

// openAgain lets all tell until the SKU is open.
func openAgain(t *testing.T, all ...*Store) {
	t.Helper()
	for range 4 {
		for _, r := range all {
			takes(t, r, "a")
			tells(t, r)
		}
	}
	testkit.Want(t, "state", stockIn(t, all[0]).State, On)
}

// refundsNone is a ledger that has lost nothing, and has answered a shop that it does not know the order "later", which
// b was to refund.
func refundsNone(t *testing.T) (server *redistest.Server, a, b *Store) {
	t.Helper()
	server, a = onRedis(t)
	b = connect(t, server, texts())
	a.Settle, b.Settle = 0, 0
	takes(t, a, "a")
	takes(t, b, "b2")
	testkit.Want(t, "refund of none", finishOne(t, b, Refund, "later"), NotFound)
	return server, a, b
}

// After a loss, a buyer by the serial of a refund that found no order is like any other.
func TestRecover_RefundThatFoundNoOrderBlocksNoLaterOrder(t *testing.T) {
	t.Parallel()
	server, a, b := refundsNone(t)
	losesTail(t, server, a)
	openAgain(t, a, b)
	code, _ := takes(t, a, "later")
	testkit.Want(t, "a later order", code, Held)
}

// As before, and the order was made and sold before the loss.
func TestRecover_RefundThatFoundNoOrderGivesBackNoLaterOrder(t *testing.T) {
	t.Parallel()
	server, a, b := refundsNone(t)
	code, _ := takes(t, a, "later")
	testkit.Want(t, "a later order", code, Held)
	testkit.Want(t, "it is sold", finishOne(t, a, Confirm, "later"), Changed)
	losesTail(t, server, a)
	openAgain(t, a, b)
	testkit.Want(t, "the later order", statusOf(t, a, "later"), "C")
}

// Redis has lost the orders of the tail, and the instances have heard of that. Before the second one tells, Redis is an
// older server for a moment, as when a master that was left answers once more.
func TestRecover_WhatAnOlderLedgerWasToldTheRightOneIsToldToo(t *testing.T) {
	t.Parallel()
	server, a := onRedis(t)
	b := connect(t, server, texts())
	a.Settle, b.Settle = 0, 0
	takes(t, a, "a")
	takes(t, b, "b")
	older := snapshotOf(t, server, "1001")
	takes(t, b, "tail of b")
	older.restore(t, server)
	losesTail(t, server, a)
	takes(t, b, "new") // it hears of the epoch
	right := snapshotOf(t, server, "1001")
	older.restore(t, server)
	tells(t, b)
	right.restore(t, server)
	for range 4 {
		for _, r := range []*Store{a, b} {
			if len(r.Pending()) > 0 {
				tells(t, r)
			}
		}
	}
	testkit.Want(t, "state", stockIn(t, a).State, On)
	testkit.Want(t, "the order of b", statusOf(t, b, "tail of b"), "H")
}

// An instance whose journal is too short has told what it knew, and cannot vouch for the rest: the SKU waits for an
// operator. It freezes again, and no operator has looked yet; the instance runs on, or was stopped.
func TestRecover_JournalThatIsTooShortStaysSoWhenTheSKUFreezesAgain(t *testing.T) {
	t.Parallel()
	for _, again := range []string{"by the other", "by itself", "by the other, when it was stopped"} {
		t.Run(again, func(t *testing.T) {
			p := newPair(t)
			x := exchangeTo(t, p.master)
			a, b := p.through(x), p.through(x)
			a.Settle, b.Settle = 0, 0
			b.Log = newOperationLog(2)
			testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
			takes(t, a, "a")
			takes(t, b, "b")
			p.cut()
			for _, serial := range []string{"1", "2", "3"} {
				takes(t, b, serial)
			}
			// The replica was cut off half a minute ago, and b has dropped an order since.
			calledAgo(t, p.replica, b, 30*time.Second)
			b.Log.dropped = time.Now().Add(-20 * time.Second).UnixMilli()
			x.turn(p.replica.Addr)
			takes(t, b, "new")
			takes(t, a, "new")
			for range 3 {
				testkit.Want(t, "state", tells(t, b).State, Frozen)
				testkit.Want(t, "state", tells(t, a).State, Frozen)
			}
			testkit.Want(t, "the oldest", statusOf(t, a, "1"), "none")
			testkit.Want(t, "the newest", statusOf(t, a, "3"), "H")
			callers := map[string][]*Store{"by the other": {a, b}, "by itself": {b, a}}[again]
			if callers == nil {
				calledAgo(t, p.replica, b, 2*time.Minute)
				callers = []*Store{a}
			}
			testkit.Check(t, p.replica.Client.HIncrBy(t.Context(), hashOf1001, "ver", -1).Err())
			for _, r := range callers {
				takes(t, r, "new")
			}
			for range 4 {
				for _, r := range callers {
					testkit.Want(t, "state", tells(t, r).State, Frozen)
				}
			}
		})
	}
}

// Two losses while the SKU is frozen. An instance that told all after the first one calls once more before it hears
// of the second one: it has told nothing since, and the SKU does not open without it.
func TestRecover_WhatWasToldBeforeTheSKUFrozeAgainIsNotToldSince(t *testing.T) {
	server, a := onRedis(t)
	b := connect(t, server, texts())
	a.Settle, b.Settle = time.Hour, time.Hour
	takes(t, a, "a")
	takes(t, b, "b2")
	losesTail(t, server, a)
	takes(t, b, "new")
	kept := snapshotOf(t, server, "1001")
	for range 2 {
		tells(t, a)
		tells(t, b)
	}
	testkit.Want(t, "put back", statusOf(t, a, "tail"), "H")
	kept.restore(t, server)
	takes(t, b, "new") // it freezes again
	tells(t, a)        // what it is about to say when that happens
	b.Settle = 0
	for range 3 {
		testkit.Want(t, "state", tells(t, b).State, Frozen)
	}
	a.Settle = 0
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	testkit.Want(t, "state", stockIn(t, b).State, On)
	testkit.Want(t, "the tail", statusOf(t, a, "tail"), "H")
}

// An instance has more to tell than one call can, and the SKU freezes again between two of them.
func TestRecover_SecondLossWhileAnInstanceTells(t *testing.T) {
	server, a := onRedis(t)
	b := connect(t, server, texts())
	a.Settle, b.Settle = 0, 0
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 1000, 0))
	takes(t, a, "a")
	takes(t, b, "b2")
	kept := snapshotOf(t, server, "1001")
	for i := range 3 * MaxItems {
		takes(t, a, fmt.Sprint("tail-", i))
	}
	kept.restore(t, server)
	takes(t, a, "new")
	takes(t, b, "new")
	kept = snapshotOf(t, server, "1001")
	calls := countTrips(t, a)
	calls.between = func() {
		if calls.Load() == 3 {
			takes(t, b, "new")
			kept.restore(t, server)
			takes(t, b, "new") // it freezes again
			tells(t, b)
		}
	}
	tells(t, a)
	testkit.Want(t, "state", tells(t, b).State, Frozen)
	for range 3 {
		tells(t, a)
		tells(t, b)
	}
	testkit.Want(t, "state", stockIn(t, b).State, On)
	for i := range 3 * MaxItems {
		testkit.Want(t, "the tail", statusOf(t, a, fmt.Sprint("tail-", i)), "H")
	}
}
