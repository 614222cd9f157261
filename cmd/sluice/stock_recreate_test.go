package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// settleConfig writes a configuration that settles into SQLite.
func settleConfig(t *testing.T, redis string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.toml")
	text := "name = \"shop\"\nupstream.targets = [\"http://127.0.0.1:9\"]\nstock.source = \"redis\"\n" +
		"stock.redis.addresses = [\"" + redis + "\"]\nsettle.database = \"sqlite:settle.db\"\n" +
		"[[route]]\nname = \"order\"\nmatch = \"POST /o/{sku}\"\ngate = \"reserve\"\nsku = \"$path_sku\"\n" +
		"user = \"$cookie_uid\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// installSettle puts a script into PATH as sluice-settle.
func installSettle(t *testing.T, script string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "sluice-settle"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
}

// The orders are those that sluice-settle prints.
func TestRecreate_AdoptsWhatSluiceSettlePrints(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	installSettle(t, `test "$*" = "orders --config `+file+` -- 1001" || { echo "sluice-settle: asked for $*" >&2; exit 1; }
printf '{"serial":"s1","user":"alice","quantity":2}\n{"serial":"s2","user":"bob","quantity":1}\n'
`)
	out, err := command(t, "stock", "recreate", "1001", "--total", "10", "--adopt", "settle", "-c", file)
	if err != nil || !strings.Contains(out, "7\tfree of 10: 0 held, 3 sold") {
		t.Fatalf("recreate: %q, %v", out, err)
	}
	if _, err := command(t, "stock", "recreate", "1001", "--total", "10", "--adopt", "none", "-c", file); err == nil {
		t.Error("a whole ledger was made again")
	}
	out, err = command(t, "stock", "adopt", "1001", "--from", "settle", "-c", file)
	if err == nil || err.Error() != "asked for orders --config "+file+" --unknown -- 1001" {
		t.Errorf("adopt: %q, %v", out, err)
	}
}

func TestStockAdopt_FromSettleAdoptsUnknownOrders(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	installSettle(t, `if test "$1" = orders && test -z "$NO_ORDER"; then
	echo '{"serial":"s1","user":"alice","quantity":2}'
fi
`)
	if out, err := command(t, "stock", "set", "1001", "10", "-c", file); err != nil {
		t.Fatalf("stock set of a new SKU: %q, %v", out, err)
	}
	adopt := func(want string, more ...string) {
		t.Helper()
		out, err := command(t, append([]string{"stock", "adopt", "1001", "--from", "settle", "-c", file}, more...)...)
		if err != nil || !strings.HasPrefix(out, "1001\t"+want) {
			t.Errorf("adopt %q: %q, %v; want %q", more, out, err, want)
		}
	}
	adopt("1 orders were not known, 0 held, 0 given back: 2 units would be sold")
	if n := server.Client.HLen(t.Context(), "sluice:shop:{1001}:r").Val(); n != 0 {
		t.Errorf("%d records are in the ledger, without --apply", n)
	}
	adopt("1 orders were not known, 0 held, 0 given back: 2 units are sold", "--apply")
	server.Client.FlushAll(t.Context())
	if _, err := command(t, "stock", "adopt", "1001", "--from", "settle", "--apply", "-c", file); err == nil ||
		!strings.Contains(err.Error(), "sluice stock recreate 1001") {
		t.Errorf("adopt without a ledger: %v", err)
	}
	t.Setenv("NO_ORDER", "1")
	adopt("the ledger knows every order")
	for args, want := range map[string]string{
		"adopt 1001 --from settle --sku 1":       "leave --sku out",
		"adopt 1001 --from settle --kind layout": "--kind layout",
		"adopt 1001 --from settle --admin :1":    "leave --admin out",
		"adopt 1001 --from shop":                 "it must be settle",
		"adopt /none --sku 1001":                 "no such file",
	} {
		_, err := command(t, append([]string{"stock", "-c", file}, strings.Fields(args)...)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
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

// Where the settlement's database cannot be asked, or knows the SKU, a SKU without a ledger gets none.
func TestStockSet_OfANewSKUAsksSluiceSettle(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	set := func(want string) {
		t.Helper()
		_, err := command(t, "stock", "set", "1001", "10", "-c", file)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("stock set: %v, want %q", err, want)
		}
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	set("install sluice-settle beside sluice")
	t.Setenv("PATH", path)
	installSettle(t, `echo "sluice-settle: asked $1 of $5" >&2; exit 1`)
	set("asked check-new of 1001")
	if n := server.Client.Exists(t.Context(), "sluice:shop:{1001}:s").Val(); n != 0 {
		t.Error("a ledger was made")
	}
}

func TestSettle_NamesTheProgramOfSettlement(t *testing.T) {
	for line, want := range map[string]string{
		"settle":                         "use sluice-settle run",
		"settle run -c shop.toml":        "use sluice-settle run -c shop.toml",
		"settle verify 1001 --no-such=1": "use sluice-settle verify 1001 --no-such=1",
	} {
		if err := typed(t, line); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}
