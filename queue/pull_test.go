package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"sluice/stockgate/ledger/memstore"
	"sluice/stockgate/ledger/protocol"
)

// leaving is a store whose caller goes away once it has its places, before it has its orders.
type leaving struct {
	*memstore.Store
	leave context.CancelFunc
}

func (l *leaving) Slots(ctx context.Context, c protocol.SlotCall) (int, error) {
	defer l.leave()
	return l.Store.Slots(ctx, c)
}

// A consumer that goes away while it takes orders leaves no places taken without their orders, nor orders half.
func TestPull_ConsumerThatLeavesLosesNoOrder(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	b := &bench{}
	open(t, b, func(o *Options) {
		o.Pulls = true
		o.Store = &leaving{o.Store.(*memstore.Store), leave}
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
		Move: protocol.MoveConfirm})
	if err != nil || done != protocol.Changed {
		t.Errorf("%v, %v", done, err)
	}
}

// tallied counts the calls about decisions.
type tallied struct {
	*memstore.Store
	decide atomic.Int64
}

func (c *tallied) Decide(ctx context.Context, sku string, call protocol.DecideCall) ([]protocol.Done,
	protocol.StockVersion, error) {
	c.decide.Add(1)
	return c.Store.Decide(ctx, sku, call)
}

// Decisions of many consumers share a call, which the store rejects whole: what it would reject has no part in one.
func TestSettle_WhatCannotBeAnOrderIsRejectedAlone(t *testing.T) {
	b, store := &bench{}, &tallied{}
	open(t, b, func(o *Options) {
		o.Pulls, store.Store = true, o.Store.(*memstore.Store)
		o.Store = store
	})
	_, err := b.Settle(t.Context(), SettleCall{SKU: "1", Receipt: "1.token", Move: protocol.MoveConfirm})
	if n := store.decide.Load(); err == nil || n != 0 {
		t.Errorf("an order without a serial: %v after %d calls", err, n)
	}
}
