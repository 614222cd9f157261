package main

import (
	"net/http"
	"testing"

	"sluice/stockgate/ledger"
)

// shopHas are orders of a shop, beside a ledger that holds "held", has sold "sold" and has given "returned" back.
func shopHas(t *testing.T) (*counter, client, []shopOrder) {
	k := atCounter(t, ledger.NewMemory(), 0)
	k.says(200, nil, "POST", "/stock/1001", `{"set": 9, "limit": 0}`)
	for _, serial := range []string{"held", "sold", "returned", "other"} {
		k.hold("1001", serial, "7", 1, farOff)
	}
	k.says(200, nil, "POST", "/reservations/sold/confirm?sku=1001", "")
	k.says(200, nil, "POST", "/reservations/returned/release?sku=1001", "")
	to := client{base: "http://localhost", http: &http.Client{Transport: inside{k.handler}}}
	return k, to, []shopOrder{{"lost", "8", 2}, {"held", "7", 1}, {"sold", "7", 1}, {"returned", "7", 1}, {"other", "9", 1}}
}

func TestAdoptingShowsWhatWouldChangeAndChangesNothing(t *testing.T) {
	k, to, orders := shopHas(t)
	before := k.ask("GET", "/stock/1001", "").Body.String()
	would, err := adopt(t.Context(), to, "1001", orders, false)
	if err != nil {
		t.Fatal(err)
	}
	if after := k.ask("GET", "/stock/1001", "").Body.String(); after != before {
		t.Errorf("%s, was %s", after, before)
	}
	done, err := adopt(t.Context(), to, "1001", orders, true)
	if err != nil {
		t.Fatal(err)
	}
	if would.Units != 4 || would.Unknown != 1 || would.Held != 1 || would.Sold != 1 || would.Returned != 1 || len(would.Conflicts) != 1 {
		t.Errorf("would be: %+v", would)
	}
	if done.Units != would.Units || len(done.Conflicts) != 1 {
		t.Errorf("done: %+v", done)
	}
	if l := done.Stock.Ledger; l.Sold != 5 || l.Held != 1 {
		t.Errorf("the ledger: %+v", l)
	}
	again, err := adopt(t.Context(), to, "1001", orders, true)
	if err != nil || again.Units != 0 || again.Sold != 4 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestFrozenSKUIsAdoptedAndThawed(t *testing.T) {
	k, to, orders := shopHas(t)
	k.says(200, words(`"frozen"`), "POST", "/stock/1001", `{"state": "frozen"}`)
	k.says(409, words("adopt"), "POST", "/stock/1001", `{"state": "on"}`)
	if _, err := adopt(t.Context(), to, "1001", orders[:1], true); err != nil {
		t.Fatal(err)
	}
	k.says(200, words(`"state":"on"`, `"sold":3`), "POST", "/stock/1001", `{"state": "on", "reconciled": true}`)
}

func TestAdoptingRefusesWhatItCannotMean(t *testing.T) {
	k, _, _ := shopHas(t)
	for body, status := range map[string]int{
		``: 400, `{}`: 400, `{"orders": []}`: 400, `{"orders": [{"serial": "a", "quantity": 0}]}`: 400,
		`{"orders": [{"serial": "", "quantity": 1}]}`: 400, `{"orders": [{"serial": "a", "quantity": 1}], "sure": true}`: 400,
		`{"orders": [{"serial": "a", "quantity": 1}]} x`: 400,
	} {
		k.says(status, nil, "POST", "/stock/1001/adopt", body)
	}
	k.says(404, nil, "POST", "/stock/none/adopt", `{"orders": [{"serial": "a", "quantity": 1}]}`)
}
