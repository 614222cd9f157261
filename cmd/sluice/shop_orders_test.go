package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestOrdersOfAShopAreReadWholeOrRefused(t *testing.T) {
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
