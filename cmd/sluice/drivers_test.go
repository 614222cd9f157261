package main

import (
	"strings"
	"testing"

	"sluice/config"
	"sluice/stockgate/driver"
)

func driven(name string) *config.Config {
	c := config.Default()
	c.Stock.Source = "redis"
	c.Stock.Layout.Driver = name
	c.Routes = []config.Route{{Name: "order", Match: "POST /order/{sku}", Gate: "reserve", SKU: "$path_sku", User: "$cookie_uid", Quantity: "1"}}
	return c
}

func TestADriverTakesTheLedgersPlace(t *testing.T) {
	c := driven("counter_codes")
	if reserves(c) || !drives(c) {
		t.Error("the ledger would be opened beside the driver")
	}
	c.Stock.Layout.Driver = ""
	if !reserves(c) || drives(c) {
		t.Error("without a driver there is no ledger")
	}
}

func TestCheckSaysWhatADriverCannotPromise(t *testing.T) {
	for _, p := range driver.Promises() {
		var out strings.Builder
		reckonDriver(&out, driven(p.Driver))
		contains(t, out.String(), p.Driver, "undersell "+p.Undersell, "docs/drivers.md")
	}
}

func TestKeysWithoutATagOnAClusterAreRefusedWithTheKeyThatWouldWork(t *testing.T) {
	c := driven("counter_users")
	c.Stock.Redis.Topology = "cluster"
	c.Stock.Layout.Key, c.Stock.Layout.UsersKey = "$sku:stock", "$sku:uids"
	errs := drivable(c)
	if len(errs) != 1 {
		t.Fatal(errs)
	}
	contains(t, errs[0].Error(), "stock.layout.driver", `key = "{$sku}:stock"`)
	c.Stock.Layout.Key, c.Stock.Layout.UsersKey = "{$sku}:stock", "{$sku}:uids"
	if errs := drivable(c); len(errs) != 0 {
		t.Error(errs)
	}
}
