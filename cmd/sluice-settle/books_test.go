package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/cli"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/ledger"
)

func TestSettleCommands_TellTheBooks(t *testing.T) {
	server := redistest.Start(t)
	file := settleConfig(t, server.Addr)
	oneOrder(t, server.Addr, "1001")
	prints := func(want string) {
		t.Helper()
		if out, err := command(t, "migrate", "--print", "-c", file); err != nil || !strings.Contains(out, want) {
			t.Errorf("migrate --print: %q, %v; want %q", out, err, want)
		}
	}
	prints("CREATE TABLE sluice_order")
	path := filepath.Join(filepath.Dir(file), "settle.db")
	for _, line := range []string{"status", "report", "verify", "verify 1001", "orders 1001", "rebuild 1001", "solve 1"} {
		out, err := command(t, append(strings.Fields(line), "-c", file)...)
		if want := path + " does not exist; sluice-settle run makes it"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s without a file: %q, %v; want %q", line, out, err, want)
		}
	}
	if out, err := command(t, "check-new", "1001", "-c", file); err != nil {
		t.Errorf("check-new without a file: %q, %v", out, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a command that only reads has made the database")
	}
	for _, want := range []string{"applied 00001_settlement.sql", "the tables are those of this version"} {
		if out, err := command(t, "migrate", "-c", file); err != nil || !strings.Contains(out, want) {
			t.Errorf("migrate: %q, %v; want %q", out, err, want)
		}
	}
	prints("-- home main\n-- the tables are those of this version\n")
	settleRun(t, file)
	testkit.Eventually(t, "the status shows what was sold", func() bool {
		out, err := command(t, "status", "-c", file)
		fields := strings.Fields(out)
		if err != nil || !strings.Contains(out, "1001") || len(fields) < 10 {
			return false
		}
		got := fields[len(fields)-10:]
		return got[2] == "0" && got[6] == "2" && got[7] == "1" && got[9] == "8"
	})
	if out, err := command(t, "verify", "1001", "-c", file); err != nil ||
		!strings.Contains(out, "equal; 2 records, 2 units sold, 2 booked") {
		t.Errorf("verify: %q, %v", out, err)
	}
	out, err := command(t, "report", "-c", file)
	if !errors.Is(err, cli.ErrReported) || !strings.Contains(out, `over_limit: "1001 alice": 2 units`) {
		t.Errorf("report: %q, %v", out, err)
	}
	if out, _ := command(t, "report", "--json", "-c", file); !strings.Contains(out,
		`{"kind":"over_limit","sku":"1001","name":"alice","units":2`) {
		t.Errorf("report --json: %q", out)
	}
}

// Users and SKUs of any bytes are shown as printable ASCII, in every form.
func TestSettleReport_ShowsHostileTextHarmlessly(t *testing.T) {
	server := redistest.Start(t)
	file := migrated(t, server.Addr)
	sku := "=\x1b[2J\x00\xff'\"`;--\u202e" + strings.Repeat("s", 200)
	oneOrderOf(t, server.Addr, sku, "@\x1b]0;x\a\x00\xff\n"+strings.Repeat("u", 1024))
	settleDrain(t, file, sku)
	for _, args := range [][]string{{"status"}, {"report"}, {"report", "--csv"}, {"report", "--json"}, {"verify", sku}} {
		out, _ := command(t, append(args, "-c", file)...)
		if !strings.Contains(out, "ssss") {
			t.Errorf("%q does not show the SKU: %q", args, out)
		}
		for _, r := range out {
			if r != '\n' && (r < ' ' || r > '~') && args[len(args)-1] != "--json" || r == 0x1b {
				t.Fatalf("%q shows %U: %q", args, r, out)
			}
		}
	}
}

func TestSettleRetry_NeedsAConflictThatCanBeRetried(t *testing.T) {
	server := redistest.Start(t)
	file := migrated(t, server.Addr)
	for id, want := range map[string]string{"x": "is not the number of a conflict", "7": "there is no conflict 7"} {
		if out, err := command(t, "retry", id, "-c", file); err == nil || !strings.Contains(out+err.Error(), want) {
			t.Errorf("retry %s: %q, %v", id, out, err)
		}
	}
}

func TestSettleReport_CSVHoldsNoFormula(t *testing.T) {
	var out strings.Builder
	found := []settleFinding{{"oversold", "1001", "=1+1", 1, "a\x00b\n"}}
	if err := writeFindings(&out, found); err != nil ||
		!strings.Contains(out.String(), `oversold,1001,'=1+1,1,"""a\x00b\n"""`) {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestSettleArchive_FreesASaleThatIsOver(t *testing.T) {
	server := redistest.Start(t)
	file := migrated(t, server.Addr)
	addToConfig(t, file, "\n[[sale]]\nname = \"past\"\nskus = [\"1001\", \"1002\"]\nstarts = 2020-01-01T00:00:00Z\n"+
		"ends = 2020-01-02T00:00:00Z\n")
	run := func(wants string, fails bool, args ...string) {
		t.Helper()
		out, err := command(t, append(args, "-c", file)...)
		if !strings.Contains(out, wants) || (err != nil) != fails {
			t.Errorf("%q: %q, %v; want %q", args, out, err, wants)
		}
	}
	oneOrder(t, server.Addr, "1001")
	run("equal; 2 records, 2 units sold, 2 booked", false, "rebuild", "1001") // it was never settled
	run("", true, "archive", "none")
	run("1002 has no ledger", true, "archive", "past") // 1001 is on
	ledgers, now := openLedgers(t, server.Addr), time.Now().UnixMilli()
	_, err1 := ledgers.SetState(t.Context(), "1001", ledger.Ended)
	_, err2 := ledgers.Finish(t.Context(), "1001", now, now+60_000, ledger.Release,
		[]ledger.Item{{Serial: "s2"}}, make([]ledger.Done, 1))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	settleDrain(t, file, "1001")
	const next = "\n[[sale]]\nname = \"next\"\nskus = [\"1001\"]\nstarts = 2199-01-01T00:00:00Z\n" +
		"ends = 2199-01-02T00:00:00Z\n"
	addToConfig(t, file, next)
	var said strings.Builder
	root := newRoot()
	root.SetErr(&said)
	root.SetArgs([]string{"archive", "past", "-c", file})
	if err := root.ExecuteContext(t.Context()); !errors.Is(err, cli.ErrReported) ||
		!strings.Contains(said.String(), `the sale "next" sells it too, from 2199-01-01T00:00:00Z`) ||
		strings.Contains(said.String(), "stock end") {
		t.Errorf("with a sale to come: %v, %s", err, said.String())
	}
	editConfig(t, file, next, "")
	run("archived; 2 records freed, 2 units sold", false, "archive", "past")
	if n := server.Client.Exists(t.Context(), "sluice:shop:{1001}:r", "sluice:shop:{1001}:u").Val(); n != 0 {
		t.Errorf("%d keys of orders are left", n)
	}
	if stock, _, err := ledgers.ReadStock(t.Context(), "1001"); err != nil || stock.State != ledger.Ended {
		t.Errorf("the ledger is %+v, %v", stock, err)
	}
}
