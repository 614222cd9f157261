package stores_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger"
)

// reserverAt lets a reserver sell what the counter's operators see.
func reserverAt(t *testing.T, k *storetest.API) *ledger.Reserver {
	reserver, err := ledger.New(ledger.Options{Secret: make([]byte, 16), SoldOutMemory: time.Hour,
		Log: slog.New(slog.DiscardHandler)}, k.Store, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reserver.Close(context.Background()) })
	k.Control.Ledgers = stores.NewLedgers(config.Default(), k.Store, func() *ledger.Reserver { return reserver })
	return reserver
}

// A unit that an operator gives back must not wait until the gate looks again.
func TestLedgersReserver_UnitThatComesBackByHandIsForSaleAtOnce(t *testing.T) {
	k := storetest.NewAPI(t, storetest.Ledger(t), 0)
	reserver := reserverAt(t, k)
	buy := func(user string) ledger.Outcome {
		return reserver.Reserve(0, ledger.Order{SKU: []byte("1001"), User: []byte(user), Quantity: 1})
	}
	k.Says(200, nil, "POST", "/stock/1001", `{"set": 1, "limit": 0}`)
	first := buy("7")
	if first.Code != ledger.Held {
		t.Fatalf("the only unit: %+v", first)
	}
	if out := buy("8"); out.Code != ledger.Undecided {
		t.Fatalf("without a unit: %+v", out)
	}
	k.Says(200, storetest.Words("released"), "POST", "/reservations/"+first.Serial+"/release?sku=1001", "")
	if out := buy("8"); out.Code != ledger.Held {
		t.Errorf("a unit came back, but: %+v", out)
	}
	if out := buy("9"); out.Code != ledger.Undecided {
		t.Fatalf("without a unit: %+v", out)
	}
	k.Says(200, nil, "POST", "/stock/1001", `{"add": 1}`)
	if out := buy("9"); out.Code != ledger.Held {
		t.Errorf("a unit was added, but: %+v", out)
	}
}

// The instance knows of which orders the response was lost, long before their deadline.
func TestLedgersReserver_OrderWhoseResponseWasLostIsListedAsUnknownAtOnce(t *testing.T) {
	k := storetest.NewAPI(t, storetest.Ledger(t), 0)
	reserver := reserverAt(t, k)
	k.Says(200, nil, "POST", "/stock/1001", `{"set": 5, "limit": 0}`)
	var serials [2]string
	for i := range serials {
		serials[i] = reserver.Reserve(0, ledger.Order{SKU: []byte("1001"), Quantity: 1}).Serial
	}
	k.Says(200, storetest.Words(`"reservations":[]`, `"held":2`), "GET", "/reservations?state=unknown", "")
	reserver.Unknown("1001", serials[0])
	k.Says(200, storetest.Words(serials[0], `"unknown":true`, `"overdue":false`, `"held":1`), "GET",
		"/reservations?state=unknown", "")
	k.Says(200, nil, "POST", "/reservations/"+serials[0]+"/confirm?sku=1001", "")
	k.Says(200, storetest.Words(`"reservations":[]`, `"held":1`), "GET", "/reservations?state=unknown", "")
}

// Who comes again with a key that was decided by hand must not hear what the gate remembers of it. While a SKU is sold
// out and too many orders are looked up, the gate answers from what it remembers.
func TestLedgersReserver_TheReserverLearnsWhatWasDecidedByHand(t *testing.T) {
	k := storetest.NewAPI(t, storetest.Ledger(t), 0)
	reserver := reserverAt(t, k)
	k.Says(200, nil, "POST", "/stock/1001", `{"set": 1, "limit": 0}`)
	buy := func() ledger.Code {
		return reserver.Reserve(0, ledger.Order{SKU: []byte("1001"), Key: []byte("one"), Quantity: 1}).Code
	}
	if code := buy(); code != ledger.Held {
		t.Fatalf("the only unit: %d", code)
	}
	if code := buy(); code != ledger.ReplayHeld {
		t.Fatalf("again: %d", code)
	}
	k.Says(200, nil, "POST", "/reservations/one/confirm?sku=1001", "")
	testkit.Eventually(t, "the reserver learns it from the ledger", func() bool { return buy() == ledger.ReplaySold })
}
