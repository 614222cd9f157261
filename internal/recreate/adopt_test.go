package recreate

import (
	"fmt"
	"strings"
	"testing"

	"sluice/internal/adminclient"
	"sluice/internal/apitest"
	"sluice/internal/storetest"
)

// shopHas are orders of a shop, beside a ledger that holds "held", has sold "sold" and has given "returned" back.
func shopHas(t *testing.T) (*apitest.API, adminclient.Client, []Order) {
	k := apitest.New(t, storetest.Ledger(t), 0)
	k.Says(200, nil, "POST", "/stock/1001", `{"set": 9, "limit": 0}`)
	for _, serial := range []string{"held", "sold", "returned", "other"} {
		k.Hold("1001", serial, "7", 1, apitest.FarOff)
	}
	k.Says(200, nil, "POST", "/reservations/sold/confirm?sku=1001", "")
	k.Says(200, nil, "POST", "/reservations/returned/release?sku=1001", "")
	to := adminclient.InProcess(k.Handler)
	return k, to, []Order{{"lost", "8", 2}, {"held", "7", 1}, {"sold", "7", 1}, {"returned", "7", 1},
		{"other", "9", 1}}
}

func TestAdopt_AdoptingShowsWhatWouldChangeAndChangesNothing(t *testing.T) {
	k, to, orders := shopHas(t)
	before := k.Ask("GET", "/stock/1001", "").Body.String()
	would, err := adopt(t.Context(), to, "1001", orders, adoption{apply: false})
	if err != nil {
		t.Fatal(err)
	}
	if after := k.Ask("GET", "/stock/1001", "").Body.String(); after != before {
		t.Errorf("%s, was %s", after, before)
	}
	done, err := adopt(t.Context(), to, "1001", orders, adoption{apply: true})
	if err != nil {
		t.Fatal(err)
	}
	if would.Units != 4 || would.Unknown != 1 || would.Held != 1 || would.Sold != 1 || would.Returned != 1 ||
		len(would.Conflicts) != 1 {
		t.Errorf("would be: %+v", would)
	}
	if done.Units != would.Units || len(done.Conflicts) != 1 {
		t.Errorf("done: %+v", done)
	}
	if l := done.Stock.Ledger; l.Sold != 5 || l.Held != 1 {
		t.Errorf("the ledger: %+v", l)
	}
	again, err := adopt(t.Context(), to, "1001", orders, adoption{apply: true})
	if err != nil || again.Units != 0 || again.Sold != 4 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestAdopt_FrozenSKUIsAdoptedAndThawed(t *testing.T) {
	k, to, orders := shopHas(t)
	k.Says(200, apitest.Words(`"frozen"`), "POST", "/stock/1001", `{"state": "frozen"}`)
	k.Says(409, apitest.Words("adopt"), "POST", "/stock/1001", `{"state": "on"}`)
	if _, err := adopt(t.Context(), to, "1001", orders[:1], adoption{apply: true}); err != nil {
		t.Fatal(err)
	}
	k.Says(200, apitest.Words(`"state":"on"`, `"sold":3`), "POST", "/stock/1001", `{"state": "on", "reconciled": true}`)
}

func TestAdopt_AdoptingRejectsWhatItCannotMean(t *testing.T) {
	k, _, _ := shopHas(t)
	for body, status := range map[string]int{
		``: 400, `{}`: 400, `{"orders": []}`: 400, `{"orders": [{"serial": "a", "quantity": 0}]}`: 400,
		`{"orders": [{"serial": "", "quantity": 1}]}`: 400, `{"orders": [{"serial": "a", "quantity": 1}], "sure": true}`: 400,
		`{"orders": [{"serial": "a", "quantity": 1}]} x`: 400,
	} {
		k.Says(status, nil, "POST", "/stock/1001/adopt", body)
	}
	k.Says(404, nil, "POST", "/stock/none/adopt", `{"orders": [{"serial": "a", "quantity": 1}]}`)
}

func TestAdopt_OrdersOfAShopAreReadWholeOrRejected(t *testing.T) {
	for text, want := range map[string]string{
		"a,7,1\nb,,2\n": "map[1001:[{a 7 1} {b  2}]]",
		"sku,quantity,serial,user,paid\n1002,3,a,\"x,y\",yes\n":    "map[1002:[{a x,y 3}]]",
		"{\"serial\":\"a\",\"user\":\"7\",\"quantity\":1}\n\n":     "map[1001:[{a 7 1}]]",
		" {\"serial\":\"a\",\"quantity\":1,\"sku\":\"9\",\"x\":0}": "map[9:[{a  1}]]",
		"":                                    "there is no order",
		"serial,user,quantity\n":              "there is no order",
		"a,7\n":                               "line 1: 2 columns",
		"a,7,1\nb,7,many\n":                   "line 2: quantity \"many\"",
		"a,7,0\n":                             "line 1: quantity 0",
		"a,7,-1\n":                            "line 1: quantity -1",
		",7,1\n":                              "line 1: serial \"\"",
		"a,7,1\na,8,1\n":                      "line 2: serial \"a\" of SKU \"1001\" stands in line 1",
		"serial,user\na,7\n":                  "line 2: no column has the name quantity",
		"{\"serial\":\"a\",\"quantity\":1.5}": "line 1:",
		"{\"serial\":\"a\"":                   "line 1:",
		"serial,sku,quantity\na,{x},1\n":      "line 2: SKU",
	} {
		got, err := readOrders(strings.NewReader(text), "1001")
		said := fmt.Sprint(got)
		if err != nil {
			said = err.Error()
		}
		if said != want && (err == nil || !strings.Contains(said, want)) {
			t.Errorf("%q: %s, want %s", text, said, want)
		}
	}
	if _, err := readOrders(strings.NewReader("a,7,1\n"), ""); err == nil || !strings.Contains(err.Error(), "--sku") {
		t.Errorf("without any SKU: %v", err)
	}
}

func FuzzReadOrders(f *testing.F) {
	for _, seed := range []string{"a,7,1\n", "{\"serial\":\"a\",\"quantity\":1}\n", "sku,serial,quantity\n1,2,3\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		orders, err := readOrders(strings.NewReader(text), "1001")
		if err != nil {
			return
		}
		for sku, all := range orders {
			for _, o := range all {
				if whole(1, sku, o) != nil {
					t.Fatalf("%+v of %q was let through", o, sku)
				}
			}
		}
	})
}
