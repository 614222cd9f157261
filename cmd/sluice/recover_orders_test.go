package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/storetest"
	"sluice/stockgate/ledger"
)

// recovered opens a gateway whose ledger of 9 holds "held" and "other", has sold "sold" and given "returned" back, and
// runs sluice stock recover 1001 there.
func recovered(t *testing.T) (k *storetest.API, run func(orders, flags string) (string, error)) {
	k = storetest.NewAPI(t, storetest.Ledger(t), 0)
	gate := httptest.NewServer(k.Handler)
	t.Cleanup(gate.Close)
	k.Says(200, nil, "POST", "/stock/1001", `{"set": 9, "limit": 0}`)
	for _, serial := range []string{"held", "sold", "returned", "other"} {
		k.Hold("1001", serial, "7", 1, storetest.FarOff)
	}
	k.Says(200, nil, "POST", "/reservations/sold/confirm?sku=1001", "")
	k.Says(200, nil, "POST", "/reservations/returned/release?sku=1001", "")
	return k, func(orders, flags string) (string, error) {
		file := filepath.Join(t.TempDir(), "orders.csv")
		if err := os.WriteFile(file, []byte(orders), 0o600); err != nil {
			t.Fatal(err)
		}
		return command(t, append([]string{"stock", "recover", "1001", "--admin", gate.URL, "--from", file},
			strings.Fields(flags)...)...)
	}
}

const ordersOfTheShop = "lost,8,2\nheld,7,1\nsold,7,1\nreturned,7,1\n"

func TestRecover_PreviewShowsBothBooksAndChangesNothing(t *testing.T) {
	k, run := recovered(t)
	before := k.Ask("GET", "/stock/1001", "").Body.String()
	const ledger = "1001\t6\tfree of 9: 2 held, 1 sold\n"
	const file = "1 orders were not known, 1 held, 1 given back: 4 units would be sold by them; 1 were sold already\n"
	if out, err := run(ordersOfTheShop, ""); err != nil || !strings.HasPrefix(out, ledger) || !strings.Contains(out, file) {
		t.Errorf("%q, %v", out, err)
	}
	if after := k.Ask("GET", "/stock/1001", "").Body.String(); after != before {
		t.Errorf("%s, was %s", after, before)
	}
	for range 2 {
		if _, err := run(ordersOfTheShop, "--apply"); err != nil {
			t.Error(err)
		}
		if s := k.Stock("1001"); s.Sold != 5 || s.Held != 1 {
			t.Errorf("the ledger: %+v", s)
		}
	}
}

func TestRecover_FrozenSKUOpensUnlessOrdersContradict(t *testing.T) {
	k, run := recovered(t)
	k.Says(200, storetest.Words(`"frozen"`), "POST", "/stock/1001", `{"state": "frozen"}`)
	out, err := run(ordersOfTheShop+"other,9,1\n", "--apply")
	if err == nil || !strings.Contains(err.Error(), "1 orders contradict") || !strings.Contains(out, "passed over: order") {
		t.Errorf("a contradiction: %q, %v", out, err)
	}
	for _, c := range []struct {
		orders, flags string
		state         ledger.State
	}{
		{"sku,serial,user,quantity\n1001,lost,8,2\n1002,far,8,2\n", "--apply --state frozen", ledger.Frozen},
		{ordersOfTheShop, "", ledger.Frozen},
		{ordersOfTheShop, "--apply", ledger.On},
	} {
		if _, err := run(c.orders, c.flags); err != nil || k.Stock("1001").State != c.state {
			t.Errorf("%s: %v, %+v", c.flags, err, k.Stock("1001"))
		}
	}
	if s := k.Stock("1001"); s.Sold != 5 || s.Held != 1 {
		t.Errorf("the ledger: %+v", s)
	}
	if _, err := run("sku,serial,quantity\n1002,a,1\n", "--apply"); err == nil ||
		!strings.Contains(err.Error(), "no order of 1001") {
		t.Errorf("a file of another SKU: %v", err)
	}
}

func TestRecover_OrdersOfAShopAreReadWholeOrRejected(t *testing.T) {
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
