package main

import (
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// The settlement's database alone knows that the SKU was sold: Redis has nothing.
func TestOrders_AreThoseThatWereSettled(t *testing.T) {
	server := redistest.Start(t)
	file := settled(t, server.Addr)
	server.Client.FlushAll(t.Context())
	const remedy = "sluice stock recover 1001 --total N --from FILE|settle|none --apply"
	if _, err := command(t, "check-new", "1001", "-c", file); err == nil || !strings.Contains(err.Error(), remedy) {
		t.Errorf("check-new: %v", err)
	}
	if out, err := command(t, "check-new", "1002", "-c", file); err != nil {
		t.Errorf("check-new of a SKU that was never settled: %q, %v", out, err)
	}
	out, err := command(t, "orders", "1001", "-c", file)
	if want := `{"serial":"=1+1","user":"alice","quantity":2}` + "\n" + `{"serial":"s2","user":"bob","quantity":1}` +
		"\n"; err != nil || out != want {
		t.Errorf("orders: %q, %v; want %q", out, err, want)
	}
	for _, more := range [][]string{nil, {"--unknown"}} {
		_, err := command(t, append([]string{"orders", "1002", "-c", file}, more...)...)
		if err == nil || !strings.Contains(err.Error(), "has never settled 1002") {
			t.Errorf("orders %q of a SKU that was never settled: %v", more, err)
		}
	}
}

// Redis has lost a sold order and a reservation that ran out, and the shop has an order that took no unit.
func TestOrders_UnknownAreThoseThatTheLedgerLacks(t *testing.T) {
	server := redistest.Start(t)
	file := settled(t, server.Addr)
	server.Client.Del(t.Context(), "sluice:shop:{1001}:r", "sluice:shop:{1001}:u", "sluice:shop:{1001}:x")
	server.Client.HSet(t.Context(), "sluice:shop:{1001}:s", "held", 0, "sold", 0)
	execSettled(t, file, "UPDATE sluice_order SET missing = CURRENT_TIMESTAMP WHERE serial = 's2'",
		"CREATE TABLE orders (sku text, serial text, quantity integer)",
		"INSERT INTO orders VALUES ('1001', '=1+1', 2), ('1001', 'foreign', 3), ('1001', 'void', 0)")
	unknown := func(want ...string) {
		t.Helper()
		out, err := command(t, "orders", "1001", "--unknown", "-c", file)
		if err != nil || strings.Count(out, "\n") != len(want) {
			t.Errorf("%q, %v; want %q", out, err, want)
		}
		for _, serial := range want {
			if !strings.Contains(out, `"serial":"`+serial+`"`) {
				t.Errorf("%q lacks %s", out, serial)
			}
		}
	}
	unknown("=1+1", "s2")
	editConfig(t, file, "[settle]", "[settle]\norders_query = \"SELECT serial, quantity FROM orders WHERE sku = :sku\"")
	unknown("=1+1", "foreign") // the shop does not have s2
	execSettled(t, file, "INSERT INTO orders VALUES ('1001', 's2', 1)")
	unknown("=1+1", "foreign", "s2")
}

// Where the database cannot be asked, the message names the way without the database.
func TestCheckNew_NeedsTheDatabase(t *testing.T) {
	file := settleConfig(t, "127.0.0.1:9")
	editConfig(t, file, "sqlite:settle.db", "postgres://u@127.0.0.1:1/shop")
	_, err := command(t, "check-new", "1001", "-c", file)
	for _, want := range []string{"1001 has no ledger", "start the database", "pass --admin"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("check-new: %v, want %q", err, want)
		}
	}
}
