package e2e

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"sluice/internal/testkit"
)

// balances fails the test unless a demonstration says that all is well, and how that was counted.
func balances(t *testing.T, out, counted string) {
	t.Helper()
	wants(t, out, "  reserve\n", "  oversold"+strings.Repeat(" ", 35)+"0\n", "The ledger balances: ", " given back; ",
		" lost responses resolved.", counted, " 0 oversold, 0 with two, 0 lost.")
	if strings.Contains(out, "BROKEN") {
		t.Errorf("something is broken:\n%s", out)
	}
}

// A small sale from end to end, the failures of the demonstration's shop included: the exit code is the verdict.
func TestDemo_BooksBalance(t *testing.T) {
	t.Parallel()
	balances(t, ok(t, "demo", "--shoppers=120", "--units=60", "--patience=40s"),
		"The ledger's records and the shop's orders agree, one by one: ")
}

// The same sale, settled into SQLite.
func TestDemo_BooksBalanceBySQL(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "demo.db")
	out := settleOK(t, "demo", "--shoppers=120", "--units=60", "--patience=40s", "--database="+file)
	balances(t, out, "The database agrees, by SQL: ")
	wants(t, out, "of the ledger and of the database, 0 differ\n", "\nreport 1001: total 60, sold ", "sqlite3 "+file)
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var sold, left, orders int64
	err = db.QueryRow("SELECT (SELECT COUNT(*) FROM sluice_order o JOIN shop_order s ON s.serial = o.serial AND "+
		"CAST(o.buyer AS text) = s.buyer WHERE o.status = 'C'), (SELECT num FROM sluice_stock), (SELECT COUNT(*) FROM "+
		"shop_order)").Scan(&sold, &left, &orders)
	if err != nil || sold == 0 || sold != orders || left != 60-sold {
		t.Errorf("%d orders are settled, the shop has %d, and %d units are left: %v", sold, orders, left, err)
	}
}

// Where the shop takes the units itself, the gate keeps no ledger.
func TestDemo_SellsByCheckWhereAsked(t *testing.T) {
	testkit.Nightly(t, "it plays a sale in real time")
	t.Parallel()
	out := ok(t, "demo", "--gate=check", "--shoppers=60", "--units=10", "--patience=40s")
	wants(t, out, "  check\n", "10 of 10\n", "  oversold"+strings.Repeat(" ", 35)+"0\n")
	for _, never := range []string{"BROKEN", "ledger"} {
		if strings.Contains(out, never) {
			t.Errorf("it says %q:\n%s", never, out)
		}
	}
}

// A crowd waits in a room, is drawn, called for free units, and hears the end. The places are verified from the record.
func TestDemo_RoomCallsByADrawForFreeUnits(t *testing.T) {
	testkit.Nightly(t, "it plays a sale in real time")
	t.Parallel()
	out := ok(t, "demo", "--room", "--shoppers=200", "--units=40", "--patience=60s")
	wants(t, out, " people, who join within 4s", "joined before the start"+strings.Repeat(" ", 20)+"190\n",
		"of 95\n", "40 of 40\n", "  oversold"+strings.Repeat(" ", 35)+"0\n",
		"calls while none was free"+strings.Repeat(" ", 20)+"0\n", "The ledger balances: 40 sold, 0 free",
		"joining first was no advantage.\nThe published record of the draw proves 190 places.\n",
		"The ledger's records and the shop's orders agree, one by one: 40 sold, 0 in stock, 0 oversold, 0 with two, "+
			"0 lost.\n")
	s := run(t, "", "demo", "--room", "--gate=check")
	if s.code == 0 || !strings.Contains(s.complaint, "--room is a sale") {
		t.Errorf("with the shop taking units: %s", s.complaint)
	}
}

func TestDemo_RoomSaysThatItNeedsRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := run(t, "", "demo", "--room")
	if s.code == 0 || !strings.Contains(s.complaint, "there is no redis-server in PATH") {
		t.Errorf("%d %s", s.code, s.complaint)
	}
}

// Orders wait for a shop of 20 orders a second; beside it is the same sale without a queue.
func TestDemo_QueueHasAnAnswerForEachBuyer(t *testing.T) {
	testkit.Nightly(t, "it plays a sale in real time")
	t.Parallel()
	out := ok(t, "demo", "--queue", "--shoppers=120", "--units=20", "--patience=40s")
	wants(t, out, "reserve, delivery queue", "  reserve\n", " queue, ", "no queue, ", "bought, and have the answer",
		"  accepted to wait", "0, 0              0, 0\n", "The ledger balances: ")
	for _, line := range strings.Split(out, "\n") {
		switch fields := strings.Fields(line); {
		case strings.Contains(line, "bought, and have"), strings.Contains(line, "orders in the shop"):
			if !strings.Contains(line, " 20") {
				t.Errorf("not all were sold: %s", line)
			}
		case strings.Contains(line, "accepted to wait") && (fields[3] < "20" || fields[4] != "0"):
			t.Errorf("accepted: %s", line)
		}
	}
	if strings.Contains(out, "BROKEN") {
		t.Errorf("something is broken:\n%s", out)
	}
}

func TestDemo_QueueIsASaleOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, with := range []string{"--keep", "--without-gate", "--gate=check"} {
		if s := run(t, "", "demo", "--queue", with); s.code != 2 || !strings.Contains(s.complaint, "--queue") {
			t.Errorf("%s: exit code %d, %s", with, s.code, s.complaint)
		}
	}
}
