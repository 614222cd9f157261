package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// eventually asks until a command's answer has want.
func eventually(t *testing.T, want string, args ...string) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%q says %q", args, want), func() bool {
		out, err := command(t, args...)
		return err == nil && strings.Contains(strings.Join(strings.Fields(out), " "), want)
	})
}

// The settlement's database alone knows that the SKU was sold: no instance runs, and Redis has nothing.
func TestRecreate_AdoptsWhatWasSettled(t *testing.T) {
	server := redistest.Start(t)
	file := migrated(t, server.Addr)
	oneOrder(t, server.Addr, "1001")
	settleRun(t, file)
	eventually(t, "1001 at", "settle", "verify", "1001", "-c", file)
	time.Sleep(time.Second) // an epoch is a second: no ledger is lost in the second in which it was made
	server.Client.FlushAll(t.Context())
	const remedy = "sluice stock recreate 1001 --total N --adopt FILE|settle|none"
	_, err := command(t, "stock", "set", "1001", "10", "-c", file)
	if err == nil || !strings.Contains(err.Error(), remedy) {
		t.Fatalf("stock set: %v", err)
	}
	out, err := command(t, "stock", "recreate", "1001", "--total", "10", "--adopt", "settle", "-c", file)
	if err != nil || !strings.Contains(out, "7\tfree of 10: 0 held, 3 sold") {
		t.Fatalf("recreate: %q, %v", out, err)
	}
	eventually(t, "equal; 2 records, 3 units sold, 3 booked", "settle", "verify", "1001", "-c", file)
	if _, err := command(t, "stock", "recreate", "1001", "--total", "10", "--adopt", "none", "-c", file); err == nil {
		t.Error("a whole ledger was made again")
	}
}

func TestRecreate_NamesWhatIsMissing(t *testing.T) {
	file := settleConfig(t, "127.0.0.1:9")
	for args, want := range map[string]string{
		"1001":                                   "--total is missing",
		"1001 --total 5":                         "--adopt is missing",
		"1001 --total 5 --adopt none --limit -2": "--limit -2",
		"1001 --total 5 --adopt none --kind layout": "--kind layout",
		"1001 --total 5 --adopt /none":              "no such file",
		"a{b --total 5 --adopt none":                "no request can name it",
	} {
		words := append([]string{"stock", "recreate", "-c", file}, strings.Fields(args)...)
		if _, err := command(t, words...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// Where the database cannot be asked, a new SKU gets no ledger, and the message names the way without the database.
func TestStockSet_OfANewSKUNeedsTheSettlementsDatabase(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	editConfig(t, file, "sqlite:settle.db", "postgres://u@127.0.0.1:1/shop")
	_, err := command(t, "stock", "set", "1001", "10", "-c", file)
	for _, want := range []string{"1001 has no ledger", "start the database", "pass --admin"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("stock set: %v, want %q", err, want)
		}
	}
	if n := server.Client.Exists(t.Context(), "sluice:shop:{1001}:s").Val(); n != 0 {
		t.Error("a ledger was made")
	}
}

// Redis has lost a sold order and a reservation that ran out, and the shop has an order that took no unit.
func TestStockAdopt_FromSettleTakesWhatTheLedgerDoesNotKnow(t *testing.T) {
	server := redistest.Start(t)
	file := settled(t, server.Addr)
	server.Client.Del(t.Context(), "sluice:shop:{1001}:r", "sluice:shop:{1001}:u", "sluice:shop:{1001}:x")
	server.Client.HSet(t.Context(), "sluice:shop:{1001}:s", "held", 0, "sold", 0)
	execSettled(t, file, "UPDATE sluice_order SET missing = CURRENT_TIMESTAMP WHERE serial = 's2'",
		"CREATE TABLE orders (sku text, serial text, quantity integer)",
		"INSERT INTO orders VALUES ('1001', '=1+1', 2), ('1001', 'stranger', 3), ('1001', 'void', 0)")
	adopt := func(want string, more ...string) {
		t.Helper()
		out, err := command(t, append([]string{"stock", "adopt", "1001", "--from", "settle", "-c", file}, more...)...)
		if err != nil || !strings.HasPrefix(out, "1001\t"+want) {
			t.Errorf("adopt %q: %q, %v; want %q", more, out, err, want)
		}
	}
	adopt("2 orders were not known, 0 held, 0 given back: 3 units would be sold")
	editConfig(t, file, "[settle]", "[settle]\norders_query = \"SELECT serial, quantity FROM orders WHERE sku = :sku\"")
	adopt("2 orders were not known, 0 held, 0 given back: 5 units would be sold") // the shop does not have s2
	execSettled(t, file, "INSERT INTO orders VALUES ('1001', 's2', 1)")
	adopt("3 orders were not known, 0 held, 0 given back: 6 units would be sold")
	if n := server.Client.HLen(t.Context(), "sluice:shop:{1001}:r").Val(); n != 0 {
		t.Errorf("%d records are in the ledger, without --apply", n)
	}
	adopt("3 orders were not known, 0 held, 0 given back: 6 units are sold", "--apply")
	adopt("the ledger knows every order")
	if r := server.Client.HGet(t.Context(), "sluice:shop:{1001}:r", "s2").Val(); !strings.HasPrefix(r, "C|1") ||
		!strings.HasSuffix(r, "|bob") {
		t.Errorf("the ledger has s2 as %q", r)
	}
	settleDrain(t, file, "1001")
	if out, err := command(t, "settle", "report", "-c", file); strings.Contains(out, "stranger") {
		t.Errorf("report: %q, %v", out, err)
	}
	for args, want := range map[string]string{
		"adopt 1001 --from settle --sku 1":       "leave --sku out",
		"adopt 1001 --from settle --kind layout": "--kind layout",
		"adopt 1001 --from settle --admin :1":    "leave --admin out",
		"adopt 1002 --from settle":               "has never settled 1002",
		"adopt 1001 --from shop":                 "it must be settle",
		"adopt /none --sku 1001":                 "no such file",
	} {
		_, err := command(t, append([]string{"stock", "-c", file}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
