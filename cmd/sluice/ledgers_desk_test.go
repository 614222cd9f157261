package main

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"sluice/config"
	"sluice/stockgate/ledger"
)

// deskAt lets a desk sell what the counter's operators see.
func deskAt(t *testing.T, k *counter) *ledger.Desk {
	desk, err := ledger.NewDesk(ledger.DeskOptions{Secret: make([]byte, 16), SoldOutMemory: time.Hour, Looks: 1, Log: slog.New(slog.DiscardHandler)}, k.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { desk.Close(context.Background()) })
	k.api.Ledgers = ledgersOf(config.Default(), k.store, func() *ledger.Desk { return desk })
	return desk
}

// A unit that an operator gives back must not wait until the gate looks again.
func TestAUnitThatComesBackByHandIsForSaleAtOnce(t *testing.T) {
	k := atCounter(t, ledger.NewMemory(), 0)
	desk := deskAt(t, k)
	buy := func(user string) ledger.Outcome {
		return desk.Reserve(0, ledger.Order{SKU: []byte("1001"), User: []byte(user), Quantity: 1})
	}
	k.says(200, nil, "POST", "/stock/1001", `{"set": 1, "limit": 0}`)
	first := buy("7")
	if first.Code != ledger.Held {
		t.Fatalf("the only unit: %+v", first)
	}
	if out := buy("8"); out.Code != ledger.SoldOut {
		t.Fatalf("without a unit: %+v", out)
	}
	k.says(200, words("released"), "POST", "/reservations/"+first.Serial+"/release?sku=1001", "")
	if out := buy("8"); out.Code != ledger.Held {
		t.Errorf("a unit came back, but: %+v", out)
	}
	if out := buy("9"); out.Code != ledger.SoldOut {
		t.Fatalf("without a unit: %+v", out)
	}
	k.says(200, nil, "POST", "/stock/1001", `{"add": 1}`)
	if out := buy("9"); out.Code != ledger.Held {
		t.Errorf("a unit was added, but: %+v", out)
	}
}

// Who comes again with a key that was decided by hand must not hear what the gate remembers of it. While a SKU is sold
// out and no look into the ledger is left, the gate answers from what it remembers.
func TestTheDeskLearnsWhatWasDecidedByHand(t *testing.T) {
	k := atCounter(t, ledger.NewMemory(), 0)
	desk := deskAt(t, k)
	k.says(200, nil, "POST", "/stock/1001", `{"set": 1, "limit": 0}`)
	buy := func() ledger.Code {
		return desk.Reserve(0, ledger.Order{SKU: []byte("1001"), Key: []byte("one"), Quantity: 1}).Code
	}
	if code := buy(); code != ledger.Held {
		t.Fatalf("the only unit: %d", code)
	}
	if code := buy(); code != ledger.ReplayHeld {
		t.Fatalf("again, which takes the only look: %d", code)
	}
	k.says(200, nil, "POST", "/reservations/one/confirm?sku=1001", "")
	for range 3_000 { // the desk learns it from the ledger
		if buy() == ledger.ReplaySold {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("what is confirmed is still %d to the desk", buy())
}
