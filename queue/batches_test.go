package queue

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// counted is a store that counts calls, each of which takes a while.
type counted struct {
	Store
	takes, decides, slots atomic.Int64
}

const callTakes = time.Millisecond

func (c *counted) HandOut(ctx context.Context, sku string, call ledger.HandOutCall) (ledger.HandedOut, error) {
	c.takes.Add(1)
	time.Sleep(callTakes)
	return c.Store.HandOut(ctx, sku, call)
}

func (c *counted) Decide(ctx context.Context, sku string, call ledger.DecideCall) ([]ledger.Done,
	ledger.StockVersion, error) {
	c.decides.Add(1)
	time.Sleep(callTakes)
	return c.Store.Decide(ctx, sku, call)
}

func (c *counted) Slots(ctx context.Context, call ledger.SlotCall) (int, error) {
	c.slots.Add(1)
	time.Sleep(callTakes)
	return c.Store.Slots(ctx, call)
}

// counting opens a deliverer over a store that counts.
func counting(t *testing.T, b *bench, change func(*Options)) *counted {
	c := &counted{}
	open(t, b, func(o *Options) {
		c.Store = o.Store
		o.Store = c
		if change != nil {
			change(o)
		}
	})
	return c
}

func TestDeliverer_OrdersShareTheirCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{}
		b.reply = func(int, *upstream.Request) (int, upstream.Outcome) {
			time.Sleep(2 * time.Millisecond)
			return 201, upstream.Answered
		}
		c := counting(t, b, func(o *Options) { o.MaxInFlight = 32 })
		const orders = 1000
		for i := range orders { // 4,000 a second
			b.order(t, "1", fmt.Sprint(i))
			time.Sleep(250 * time.Microsecond)
		}
		time.Sleep(100 * time.Millisecond)
		if stock, _, _ := b.store.ReadStock(t.Context(), "1"); stock.Sold != orders {
			t.Fatalf("%+v", stock)
		}
		takes, decides, slots := c.takes.Load(), c.decides.Load(), c.slots.Load()
		t.Logf("%d orders: %d calls that take, %d that decide, %d about places", orders, takes, decides, slots)
		if takes > orders/10 || decides > orders/10 || slots > orders/40 {
			t.Errorf("%d orders: %d calls that take, %d that decide, %d about places", orders, takes, decides, slots)
		}
	})
}

// Few orders wait for no others, and unused places are given back.
func TestDeliverer_FewOrdersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{}
		c := counting(t, b, nil)
		for i := range 10 {
			began := time.Now()
			b.order(t, "1", fmt.Sprint(i))
			for sold := int64(0); sold <= int64(i); time.Sleep(callTakes / 4) {
				stock, _, _ := b.store.ReadStock(t.Context(), "1")
				sold = stock.Sold
			}
			if took := time.Since(began); took > 4*callTakes {
				t.Errorf("order %d took %v", i, took)
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second)
		all := ledger.SlotCall{Want: []string{"a", "b", "c", "d"}, Limit: 4, For: 1000}
		if n, err := b.store.Slots(t.Context(), all); n != 4 || err != nil {
			t.Errorf("%d of 4 places are free, %v; %d calls", n, err, c.slots.Load())
		}
	})
}

// While others have all places, or the rate is used up, accepted orders do not make it ask each time.
func TestDeliverer_AsksSeldomWhileAllPlacesAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{}
		c := counting(t, b, nil)
		all := []string{"a", "b", "c", "d"}
		if n, err := b.store.Slots(t.Context(), ledger.SlotCall{Want: all, Limit: 4, For: 2000}); n != 4 || err != nil {
			t.Fatal(n, err)
		}
		for i := range 1000 {
			b.order(t, "1", fmt.Sprint(i))
			time.Sleep(time.Millisecond)
		}
		if n := c.slots.Load(); n > 15 {
			t.Errorf("asked for places %d times in a second", n)
		}
		time.Sleep(2 * time.Second)
		if stock, _, _ := b.store.ReadStock(t.Context(), "1"); stock.Sold < 500 {
			t.Errorf("when places are free: %+v", stock)
		}
	})
}
