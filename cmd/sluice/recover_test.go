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
func TestRecover_LostLedgerHasWhatSluiceSettlePrints(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	installSettle(t, `test "$*" = "orders --config `+file+` -- 1001" || { echo "sluice-settle: asked for $*" >&2; exit 1; }
printf '{"serial":"s1","user":"alice","quantity":2}\n{"serial":"s2","user":"bob","quantity":1}\n'
`)
	lost := []string{"stock", "recover", "1001", "--total", "10", "--from", "settle", "-c", file}
	out, err := command(t, lost...)
	if err != nil || !strings.Contains(out, "its ledger is gone, and would be made again with a total of 10") ||
		!strings.Contains(out, "settle: 2 orders were not known, 0 held, 0 given back: 3 units would be sold") {
		t.Fatalf("the preview: %q, %v", out, err)
	}
	if n := server.Client.Exists(t.Context(), "sluice:shop:{1001}:s").Val(); n != 0 {
		t.Error("the preview has made a ledger")
	}
	out, err = command(t, append(lost, "--apply")...)
	if err != nil || !strings.HasSuffix(out, "7\tfree of 10: 0 held, 3 sold; 1 a person\n") {
		t.Fatalf("recover: %q, %v", out, err)
	}
	if _, err := command(t, append(lost, "--apply")...); err == nil || !strings.Contains(err.Error(), "leave --total out") {
		t.Errorf("a whole ledger was made again: %v", err)
	}
	out, err = command(t, "stock", "recover", "1001", "-c", file)
	if err == nil || err.Error() != "asked for orders --config "+file+" --unknown -- 1001" {
		t.Errorf("a ledger that is there: %q, %v", out, err)
	}
}

func TestRecover_FromSettleTakesUnknownOrders(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	installSettle(t, `if test "$1" = orders && test -z "$NO_ORDER"; then
	echo '{"serial":"s1","user":"alice","quantity":2}'
fi
`)
	if out, err := command(t, "stock", "set", "1001", "10", "-c", file); err != nil {
		t.Fatalf("stock set of a new SKU: %q, %v", out, err)
	}
	recovers := func(want string, more ...string) {
		t.Helper()
		out, err := command(t, append([]string{"stock", "recover", "1001", "-c", file}, more...)...)
		if err != nil || !strings.Contains(out, "\n1001\tsettle: "+want) {
			t.Errorf("recover %q: %q, %v; want %q", more, out, err, want)
		}
	}
	recovers("1 orders were not known, 0 held, 0 given back: 2 units would be sold")
	if n := server.Client.HLen(t.Context(), "sluice:shop:{1001}:r").Val(); n != 0 {
		t.Errorf("%d records are in the ledger, without --apply", n)
	}
	recovers("1 orders were not known, 0 held, 0 given back: 2 units are sold", "--from", "settle", "--apply")
	server.Client.FlushAll(t.Context())
	if _, err := command(t, "stock", "recover", "1001", "--from", "settle", "--apply", "-c", file); err == nil ||
		!strings.Contains(err.Error(), "sluice stock recover 1001 --total N") {
		t.Errorf("recover without a ledger: %v", err)
	}
	if out, err := command(t, "stock", "set", "1001", "10", "-c", file); err != nil {
		t.Fatalf("stock set: %q, %v", out, err)
	}
	t.Setenv("NO_ORDER", "1")
	recovers("the ledger knows every order")
}

func TestRecover_NamesWhatIsMissing(t *testing.T) {
	file := settleConfig(t, "127.0.0.1:9")
	for args, want := range map[string]string{
		"1001 --apply":                             "--from is missing",
		"1001 --total 5 --apply":                   "--from is missing",
		"1001 --total 5 --from none --limit -2":    "--limit -2",
		"1001 --total -1 --from none":              "--total -1",
		"1001 --limit 2 --from none":               "--limit belongs to --total",
		"1001 --total 5 --from none --kind layout": "--kind layout",
		"1001 --from settle --admin :1":            "leave --admin out",
		"1001 --total 5 --from /none":              "no such file",
		"a{b --total 5 --from none":                "no request can name it",
	} {
		words := append([]string{"stock", "recover", "-c", file}, strings.Fields(args)...)
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
