package queue

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// leaving is a store whose caller goes away once it has its places, before it has its orders.
type leaving struct {
	*ledger.Store
	leave context.CancelFunc
}

func (l *leaving) Slots(ctx context.Context, c ledger.SlotCall) (int, error) {
	defer l.leave()
	return l.Store.Slots(ctx, c)
}

// A consumer that goes away while it takes orders leaves no places taken without their orders, nor orders half.
func TestPull_ConsumerThatLeavesLosesNoOrder(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	b := &bench{}
	open(t, b, func(o *Options) {
		o.Pulls = true
		o.Store = &leaving{o.Store.(*ledger.Store), leave}
	})
	b.order(t, "1", "a")
	orders, err := b.Pull(ctx, PullCall{SKU: "1", Orders: 4, Lease: time.Second})
	if err != nil || len(orders) != 1 || orders[0].Serial != "a" {
		t.Fatalf("%+v, %v", orders, err)
	}
	if ctx.Err() == nil {
		t.Fatal("the consumer has not left")
	}
	done, err := b.Settle(t.Context(), SettleCall{SKU: "1", Serial: "a", Receipt: orders[0].Receipt,
		Move: ledger.MoveConfirm})
	if err != nil || done != ledger.Changed {
		t.Errorf("%v, %v", done, err)
	}
}

// The places of a consumer that dies are free at the deadline of its attempts and the grace: no earlier, so that the
// upstream never has more orders than the limit, and no later, so that other consumers get orders.
func TestPull_PlacesOfADeadConsumerEndWithItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{knows: ledger.OrderNotFound}
		open(t, b, func(o *Options) { o.Pulls, o.MaxInFlight, o.Timeout = true, 2, 5*time.Second })
		for _, serial := range []string{"a", "b", "c", "d"} {
			b.order(t, "1", serial)
		}
		take := func() (got string) {
			orders, err := b.Pull(t.Context(), PullCall{SKU: "1", Orders: 4, Lease: 5 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range orders {
				got += fmt.Sprint(o.Serial, o.Attempt, " ")
			}
			return got
		}
		for _, step := range []struct {
			after time.Duration // since the step before
			want  string
		}{
			{0, "a1 b1 "},
			{5900 * time.Millisecond, ""},      // the lease and a grace of 1 s are not over
			{200 * time.Millisecond, "a2 b2 "}, // these last twice as long
			{10900 * time.Millisecond, ""},
			{1300 * time.Millisecond, "a3 b3 "},
		} {
			time.Sleep(step.after) // in virtual time
			if got := take(); got != step.want {
				t.Fatalf("%v later: took %q, want %q", step.after, got, step.want)
			}
		}
	})
}

// tallied counts the calls about decisions, and the most orders that one call was to hand out.
type tallied struct {
	*ledger.Store
	decide, most atomic.Int64
}

func (c *tallied) HandOut(ctx context.Context, sku string, call ledger.HandOutCall) (ledger.HandedOut, error) {
	c.most.Store(max(c.most.Load(), int64(call.Orders)))
	return c.Store.HandOut(ctx, sku, call)
}

func (c *tallied) Decide(ctx context.Context, sku string, call ledger.DecideCall) ([]ledger.Done,
	ledger.StockVersion, error) {
	c.decide.Add(1)
	return c.Store.Decide(ctx, sku, call)
}

// Decisions of many consumers share a call, which the store rejects whole: what it would reject has no part in one.
func TestSettle_WhatCannotBeAnOrderIsRejectedAlone(t *testing.T) {
	b, store := &bench{}, &tallied{}
	open(t, b, func(o *Options) {
		o.Pulls, store.Store = true, o.Store.(*ledger.Store)
		o.Store = store
	})
	_, err := b.Settle(t.Context(), SettleCall{SKU: "1", Receipt: "1.token", Move: ledger.MoveConfirm})
	if n := store.decide.Load(); err == nil || n != 0 {
		t.Errorf("an order without a serial: %v after %d calls", err, n)
	}
}

// The reply to one call of Take has a bounded size, however long orders are.
func TestTake_LongOrdersAreHandedOutFewAtATime(t *testing.T) {
	for name, pulls := range map[string]bool{"sent": false, "taken": true} {
		t.Run(name, func(t *testing.T) {
			b, store, all := &bench{}, &tallied{}, make(chan struct{})
			b.reply = func(int, *upstream.Request) (int, upstream.Outcome) { <-all; return 201, upstream.Answered }
			open(t, b, func(o *Options) {
				o.Pulls, o.MaxInFlight, o.MaxOrder = pulls, 1, 256<<10
				store.Store = o.Store.(*ledger.Store)
				o.Store = store
			})
			for i := range 30 {
				b.order(t, "1", fmt.Sprint(i))
			}
			more := *b.live()
			more.MaxInFlight = 64
			b.Use(more)
			close(all)
			if pulls {
				orders, err := b.Pull(t.Context(), PullCall{SKU: "1", Orders: 20, Lease: time.Second})
				if len(orders) != 20 || err != nil {
					t.Errorf("a consumer has %d orders, %v", len(orders), err)
				}
			} else {
				testkit.Eventually(t, "all are sold", func() bool {
					stock, _, err := b.store.ReadStock(t.Context(), "1")
					return err == nil && stock.Sold == 30
				})
			}
			if n := store.most.Load(); n > takeBytes/(256<<10) {
				t.Errorf("%d orders of 256 KiB in one call", n)
			}
		})
	}
}
