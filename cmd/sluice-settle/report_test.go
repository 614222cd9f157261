package main

import (
	"errors"
	"strings"
	"testing"

	"sluice/internal/cli"
	"sluice/internal/redistest"
)

// The shop has an order that took no unit, and lacks one that was sold. Without Redis the report lacks one rule alone.
func TestSettleReport_ComparesTheShopsOrders(t *testing.T) {
	server := redistest.Start(t)
	file := settled(t, server.Addr)
	execSettled(t, file, "CREATE TABLE orders (sku text, serial text, quantity integer)",
		"INSERT INTO orders VALUES ('1001', 'unknown', 3), ('1001', 's2', 1)")
	editConfig(t, file, "[settle]", "[settle]\norders_query = \"SELECT serial, quantity FROM orders WHERE sku = :sku\"")
	oversold, unsold, over := `oversold: "1001 unknown": 3 units: "the shop has 3 units, the order took 0 of the ledger"`,
		`unsold: "1001 =1+1": 2 units`, `over_limit: "1001 alice": 2 units`
	out, err := command(t, "report", "-c", file)
	if !errors.Is(err, cli.ErrReported) || !strings.HasPrefix(out, oversold) || !strings.Contains(out, unsold) ||
		!strings.Contains(out, over) || strings.Contains(out, "s2") {
		t.Errorf("report: %q, %v", out, err)
	}
	editConfig(t, file, server.Addr, "127.0.0.1:1")
	root, said := newRoot(), new(strings.Builder)
	root.SetOut(said)
	root.SetErr(said)
	root.SetArgs([]string{"report", "-c", file})
	err = root.ExecuteContext(t.Context())
	out = said.String()
	if !errors.Is(err, cli.ErrReported) || !strings.Contains(out, oversold) || !strings.Contains(out, unsold) ||
		strings.Contains(out, over) || !strings.Contains(out, "was not checked (over_limit)") {
		t.Errorf("without Redis: %q, %v", out, err)
	}
}

// A row of the shop that says no number of units is named, and hides nothing else.
func TestSettleReport_NamesARowThatItCannotRead(t *testing.T) {
	server := redistest.Start(t)
	file := settled(t, server.Addr)
	for _, sku := range []string{"0999", "2001"} { // before and after
		oneOrder(t, server.Addr, sku)
		settleDrain(t, file, sku)
	}
	execSettled(t, file, "CREATE TABLE orders (sku text, serial text, quantity integer)", "INSERT INTO orders VALUES "+
		"('1001', '=1+1', NULL), ('1001', NULL, 1), ('1001', 'x', 1), ('0999', 'y', 1), ('2001', 'z', 1)",
		"INSERT INTO sluice_conflict (target, sku, epoch, ver, kind, detail) "+
			"VALUES ('orders', '1001', 1, 1, 'lost', 'late')")
	editConfig(t, file, "[settle]", "[settle]\norders_query = \"SELECT serial, quantity FROM orders WHERE sku = :sku\"")
	out, err := command(t, "report", "-c", file)
	for _, want := range []string{`oversold: "1001 x"`, `oversold: "0999 y"`, `oversold: "2001 z"`, "conflict: ",
		`unsold: "2001 =1+1"`} {
		if !strings.Contains(out, want) {
			t.Errorf("report: %q; want %q", out, want)
		}
	}
	const row = `"1001" by settle.orders_query: 2 rows cannot be read; the first one has serial "=1+1" and ` +
		"quantity NULL: correct it, or leave it out of the query"
	if err == nil || !strings.Contains(err.Error(), row) || strings.Contains(out, `unsold: "1001`) {
		t.Errorf("report: %q, %v; want %q", out, err, row)
	}
	_, err = command(t, "orders", "1001", "--unknown", "-c", file)
	if err == nil || !strings.Contains(err.Error(), row) {
		t.Errorf("orders that the ledger does not know: %v", err)
	}
}

// Each conflict has its way out, which is a command, and solve is one.
func TestSettleStatus_ShowsTheWayOut(t *testing.T) {
	server := redistest.Start(t)
	file := settled(t, server.Addr)
	execSettled(t, file, "INSERT INTO sluice_conflict (target, sku, epoch, ver, kind, detail) "+
		"VALUES ('orders', '1001', 1, 1, 'giveback', 'late'), ('orders', 'it''s', 1, 1, 'missing', 'two')")
	out, err := command(t, "status", "-c", file)
	for _, want := range []string{"conflict 1: giveback of 1001 at 1-1: late\n  way out: sluice-settle solve 1\n",
		"\n  way out: sluice stock recover --from settle --apply 'it'\\''s'\n"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("status: %q, %v; want %q", out, err, want)
		}
	}
	if out, err := command(t, "solve", "1", "-c", file); err != nil || out != "conflict 1 of 1001 is solved\n" {
		t.Errorf("solve: %q, %v", out, err)
	}
	if _, err := command(t, "solve", "1", "-c", file); err == nil ||
		!strings.Contains(err.Error(), "there is no conflict 1") {
		t.Errorf("solve again: %v", err)
	}
	if out, _ := command(t, "status", "-c", file); strings.Contains(out, "late") {
		t.Errorf("status: %q", out)
	}
}

// What is booked balances, and is not all that was sold: of one SKU a part waits in Redis, of another one everything.
func TestSettleReport_ChangesThatWaitAreNoBalance(t *testing.T) {
	server := redistest.Start(t)
	file := migrated(t, server.Addr)
	if out, err := command(t, "report", "-c", file); err != nil || out != "the books balance\n" {
		t.Errorf("report: %q, %v", out, err)
	}
	oneOrder(t, server.Addr, "1001")
	settleDrain(t, file, "1001")
	r := openLedgers(t, server.Addr)
	var errs [2]error
	for i, sku := range []string{"1001", "1002"} {
		_, errs[i] = r.SetTotal(t.Context(), sku, 20, 2)
	}
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	const rest = "; if they stay, /readyz?verbose of sluice-settle run says why\"\n"
	want := `waiting: 1001: 0 units: "sold and not settled yet; changes that wait in Redis: 1` + rest +
		`waiting: 1002: 0 units: "sold and not settled yet; changes that wait in Redis: all` + rest
	if out, err := command(t, "report", "-c", file); err != nil || out != want {
		t.Errorf("report: %q, %v; want %q", out, err, want)
	}
	if out, err := command(t, "report", "--json", "-c", file); err != nil ||
		!strings.Contains(out, `{"kind":"waiting","sku":"1001"`) {
		t.Errorf("report --json: %q, %v", out, err)
	}
	_, err := command(t, "verify", "1001", "-c", file)
	if err == nil || !strings.Contains(err.Error(), "not settled yet; try again at a quiet moment; /readyz?verbose") {
		t.Errorf("verify: %v", err)
	}
	for _, sku := range []string{"1001", "1002"} {
		settleDrain(t, file, sku)
	}
	if out, err := command(t, "report", "-c", file); err != nil || out != "the books balance\n" {
		t.Errorf("report: %q, %v", out, err)
	}
}

// Sluice's own table has other units left than the total without what is booked.
func TestSettleReport_ComparesTheStockThatIsLeft(t *testing.T) {
	server := redistest.Start(t)
	file := settled(t, server.Addr)
	editConfig(t, file, server.Addr, "127.0.0.1:1") // the limit of a user is not checked
	if out, err := command(t, "report", "-c", file); err != nil || out != "the books balance\n" {
		t.Errorf("report: %q, %v", out, err)
	}
	execSettled(t, file, "UPDATE sluice_stock SET num = 9")
	const want = "stock: 1001: 1 units: " +
		"\"sluice_stock has 9 units left, and 8 should be left: 10 without the 2 that are booked\"\n"
	if out, err := command(t, "report", "-c", file); !errors.Is(err, cli.ErrReported) || out != want {
		t.Errorf("report: %q, %v", out, err)
	}
	execSettled(t, file, "DELETE FROM sluice_stock")
	if out, err := command(t, "report", "-c", file); !errors.Is(err, cli.ErrReported) ||
		!strings.Contains(out, "stock: 1001: -8 units: \"sluice_stock has no row") {
		t.Errorf("report: %q, %v", out, err)
	}
}

// sluice-settle run verifies by itself, by the key of the file.
func TestSettleRun_RepairsARowThatWasEditedByHand(t *testing.T) {
	server := redistest.Start(t)
	file := settled(t, server.Addr)
	editConfig(t, file, "[settle]", "[settle]\nverify = \"2s\"")
	execSettled(t, file, "DELETE FROM sluice_order WHERE serial = 's2'", "UPDATE sluice_order SET status = 'H'")
	settleRun(t, file)
	eventually(t, "equal; 2 records, 2 units sold, 2 booked, 2 deducted", "verify", "1001", "-c", file)
}
