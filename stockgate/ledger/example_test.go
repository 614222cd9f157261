package ledger_test

import (
	"context"
	"fmt"
	"time"

	"sluice/internal/embedredis"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

func Example() {
	ctx := context.Background()
	server := embedredis.Start() // a Redis in this process
	defer server.Stop()
	store, err := ledger.NewStore(ledger.StoreOptions{Name: "shop", Events: 1000, Options: redisconn.Options{
		Addresses: []string{"memory"}, Dialer: server.Dial, PoolSize: 1, ConnectTimeout: time.Minute, Timeout: time.Minute,
		BreakerErrors: redisconn.Unbroken, BreakerPause: time.Second}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	if _, err := store.SetTotal(ctx, "1001", 1, 1); err != nil { // one unit, one a person
		fmt.Println(err)
	}

	now, deadline := int64(1_000), int64(901_000) // Unix milliseconds
	orders := []ledger.Item{
		{Serial: "order-1", User: "ann", Quantity: 1},
		{Serial: "order-2", User: "bob", Quantity: 1},
		{Serial: "order-1", User: "ann", Quantity: 1}, // ann's browser repeats itself
	}
	codes := make([]ledger.Code, len(orders))
	if _, err := store.Reserve(ctx, "1001", 0, now, deadline, orders, codes); err != nil {
		fmt.Println(err)
	}
	fmt.Println(codes[0] == ledger.Held, codes[1] == ledger.SoldOut, codes[2] == ledger.ReplayHeld)

	done := make([]ledger.Done, 1)
	stock, err := store.Finish(ctx, "1001", now, deadline, ledger.Release, orders[:1], done)
	fmt.Println(done[0] == ledger.Changed, stock.Free, err)
	// Output:
	// true true true
	// true 1 <nil>
}
