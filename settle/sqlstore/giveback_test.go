package sqlstore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/settle"
	"sluice/settle/sqlstore"
)

func (s *site) exec(query string) {
	s.Helper()
	if err := s.store.Exec(s.Context(), query); err != nil {
		s.Fatalf("%s: %v", query, err)
	}
}

// cancels is what the shop does in the transaction that cancels an order.
func (s *site) cancels(sku, serial string) {
	s.Helper()
	again := "ON CONFLICT (sku, serial) DO NOTHING"
	if strings.HasPrefix(s.url, "mysql") {
		again = "ON DUPLICATE KEY UPDATE sku = sku"
	}
	for range 2 { // the statement of docs/settlement.md
		s.exec(fmt.Sprintf("INSERT INTO sluice_giveback (sku, serial) VALUES ('%s', '%s') %s", sku, serial, again))
	}
}

// refunds does the database's part of a give-back alone.
func (s *site) refunds(g settle.Giveback) {
	s.Helper()
	if _, _, err := s.store.GiveBack(s.Context(), g, settle.Position{}); err != nil {
		s.Fatal(err)
	}
}

// givesBack tries what is due, and wants so many.
func (s *site) givesBack(want int) {
	s.Helper()
	if n, err := s.settler.GiveBack(s.Context()); err != nil || n != want {
		s.Errorf("%d orders were due to be given back, %v: want %d", n, err, want)
	}
}

// balances wants ledger, rows and stock to be equal, with so many units sold and left.
func (s *site) balances(sku string, sold, left int64) {
	s.Helper()
	s.drain(sku)
	if c := s.equal(sku); c.Sold != sold || s.left(sku) != left {
		s.Errorf("%d units sold, %d left: want %d, %d", c.Sold, s.left(sku), sold, left)
	}
}

func givesBackOnce(s *site) {
	const sku = "back"
	s.ledger.set(sku, 10)
	s.ledger.reserve(sku, "b1", "u", 3)
	s.ledger.finish(sku, "confirm", "b1")
	s.ledger.buy(sku, 0, 2)
	s.ledger.reserve(sku, "b2", "v", 1)
	s.ledger.finish(sku, "release", "b2")
	s.drain(sku)
	s.cancels(sku, "b1")
	s.cancels(sku, "b2")
	due := must(s.store.Due(s.Context(), 10))(s.T)
	if len(due) != 2 || due[0].Serial != "b1" || due[0].Age < 0 || due[0].Age > time.Minute {
		s.Fatalf("due are %+v", due)
	}
	// A settler dies after the database, and another one after it: the stock is returned once, before the unit is free.
	for range 2 {
		known, _, err := s.store.GiveBack(s.Context(), due[0], settle.Position{})
		if err != nil || known != settle.KnownRefunded {
			s.Errorf("give back: %d, %v", known, err)
		}
		if left := s.left(sku); left != 8 {
			s.Errorf("%d units are left: want 8", left)
		}
	}
	s.givesBack(2)
	s.givesBack(0)
	s.balances(sku, 2, 8)
	if n := s.settler.Stats().Givebacks; n != 1 {
		s.Errorf("%d orders were given back: want 1, the other was released", n)
	}
	// The API is used too, first or last.
	s.ledger.finish(sku, "refund", "back-0")
	s.cancels(sku, "back-0")
	s.givesBack(1)
	s.balances(sku, 1, 9)
}

func keepsEarlyGiveback(s *site) {
	const sku = "early"
	s.cancels(sku, "early-0") // before the database knows the SKU
	began := time.Now()
	s.givesBack(1)
	again, err := s.settler.GiveBack(s.Context()) // not before a second has passed
	if err != nil || again != 0 && time.Since(began) < time.Second {
		s.Errorf("%d orders were tried again within a second, %v", again, err)
	}
	s.ledger.set(sku, 10)
	s.ledger.reserve(sku, "early-0", "u", 2)
	s.drain(sku)
	s.exec("UPDATE sluice_giveback SET due = 0, asked = asked - 7200000 WHERE sku = 'early'")
	s.givesBack(1) // it is held only
	if waiting := must(s.store.Waiting(s.Context()))(s.T); waiting.Giveback < 2*time.Hour ||
		len(s.conflicts(sku, "giveback")) != 1 {
		s.Errorf("after two hours: oldest %v, conflicts %q", waiting.Giveback, s.conflicts(sku, "giveback"))
	}
	s.ledger.finish(sku, "confirm", "early-0")
	s.drain(sku)
	s.exec("UPDATE sluice_giveback SET due = 0 WHERE sku = 'early'")
	s.givesBack(1)
	s.balances(sku, 0, 10)
	if oldest, err := s.store.OldestGiveback(s.Context()); oldest != 0 || err != nil {
		s.Errorf("the oldest that waits: %v, %v", oldest, err)
	}
}

// givesBackToRightRedis has a Redis that is older than the database, or empty, for a while.
func givesBackToRightRedis(s *site) {
	for sku, old := range map[string]bool{"rightolder": true, "rightempty": false} {
		s.ledger.set(sku, 5)
		s.ledger.buy(sku, 0, 2)
		before := s.dump(sku)
		s.ledger.freeze(sku)
		s.ledger.open(sku)
		s.drain(sku)
		right := s.dump(sku)
		if s.losesLedger(sku); old {
			before()
		}
		s.cancels(sku, sku+"-0")
		s.givesBack(1)
		right()
		s.exec("UPDATE sluice_giveback SET due = 0")
		s.givesBack(1)
		s.balances(sku, 1, 4)
		s.exec("UPDATE sluice_giveback SET due = 0")
		s.givesBack(0)
	}
}

// givesBackEarlier has orders of a ledger that is gone, before and after the settler has seen the next one.
func givesBackEarlier(t *testing.T, server *redistest.Server, url string) {
	s := newSite(t, server, url, sqlstore.Stock{Table: "past_stock", SKUColumn: "sku_id", LeftColumn: "num", Check: true})
	const sku = "past"
	s.exec("CREATE TABLE past_stock (sku_id varchar(64) PRIMARY KEY, num bigint NOT NULL)")
	s.exec("INSERT INTO past_stock VALUES ('past', 10)")
	s.ledger.set(sku, 3)
	s.ledger.buy(sku, 0, 3)
	s.drain(sku)
	s.losesLedger(sku)
	s.ledger.set(sku, 3)
	s.cancels(sku, "past-0")
	s.givesBack(1) // it is done when the settler knows that its ledger is gone
	s.ledger.buy(sku, 5, 1)
	s.drain(sku)
	s.exec("UPDATE sluice_giveback SET due = 0")
	s.cancels(sku, "past-1")
	s.givesBack(2)
	if oldest := must(s.store.OldestGiveback(t.Context()))(t); oldest != 0 {
		t.Errorf("an order waits for %v: want none", oldest)
	}
	s.balances(sku, 1, 8)

	own := newSite(t, server, url, sqlstore.Stock{})
	own.ledger.set("ownpast", 3)
	own.ledger.buy("ownpast", 0, 2)
	own.drain("ownpast")
	own.losesLedger("ownpast")
	own.ledger.set("ownpast", 3)
	own.drain("ownpast")
	own.cancels("ownpast", "ownpast-0")
	own.givesBack(1)
	own.balances("ownpast", 0, 3)
}

func endsWhatIsPaid(s *site) {
	s.exec("CREATE TABLE paid (sku varchar(64), units bigint)")
	for _, sku := range []string{"pays", "paysnot", "paidbefore", "paidwhileheld"} {
		s.ledger.set(sku, 5)
	}
	s.ledger.buy("pays", 0, 5)
	s.ledger.buy("paysnot", 0, 5)
	s.ledger.buy("paidbefore", 0, 4) // an earlier sale of the SKU was paid
	s.ledger.buy("paidwhileheld", 0, 4)
	s.ledger.reserve("paidwhileheld", "held", "u", 1)
	s.exec("INSERT INTO paid VALUES ('paidbefore', 5), ('paidwhileheld', 5)")
	s.exec("INSERT INTO paid VALUES ('pays', 2), ('paysnot', 4), ('pays', 2)")
	for _, want := range []string{"on", "ended"} {
		if err := s.settler.EndPaid(s.Context()); err != nil {
			s.Fatal(err)
		}
		if state := s.ledger.state("pays"); state != want {
			s.Errorf("the SKU is %s: want %s", state, want)
		}
		s.exec("INSERT INTO paid VALUES ('pays', 1)")
	}
	for _, sku := range []string{"paysnot", "paidbefore", "paidwhileheld"} {
		if state := s.ledger.state(sku); state != "on" {
			s.Errorf("the SKU %s is %s: want on", sku, state)
		}
	}
	endPaid := func(what, want string) {
		s.Helper()
		if err := s.settler.EndPaid(s.Context()); err != nil {
			s.Fatal(err)
		}
		if state := s.ledger.state("pays"); state != want {
			s.Errorf("%s the SKU is %s: want %s", what, state, want)
		}
	}
	_ = must(s.ledger.Refund(s.Context(), "pays", "pays-0"))(s.T)
	endPaid("when a unit was given back", "on")
	s.ledger.buy("pays", 5, 1)
	endPaid("when that is sold and paid", "ended")
	s.ledger.change("pays", "ended")
	_ = must(s.ledger.Refund(s.Context(), "pays", "pays-1"))(s.T)
	endPaid("when an operator has ended it", "ended")
}

// countsPaidAsTheGuideDoes runs the example of settle.paid.query in docs/settlement.md, with an order that was paid and
// refunded, one of an earlier sale, and a webhook, which has a cursor of its own.
func countsPaidAsTheGuideDoes(s *site) {
	const sku = "guide"
	guide := string(must(os.ReadFile("../../docs/settlement.md"))(s.T))
	_, query, _ := strings.Cut(guide, "[settle.paid]\nquery = \"\"\"\n")
	query, _, ok := strings.Cut(query, "\"\"\"")
	if !ok {
		s.Fatal("docs/settlement.md has no query of what is paid")
	}
	s.ledger.set(sku, 9)
	s.ledger.buy(sku, 8, 1)
	s.drain(sku)
	s.losesLedger(sku)
	s.ledger.set(sku, 9)
	s.ledger.buy(sku, 0, 3)
	s.ledger.finish(sku, "refund", sku+"-0")
	s.drain(sku)
	s.exec("INSERT INTO sluice_cursor (target, sku, born, epoch, ver, fingerprint, total, held, sold, state, deducted) " +
		"SELECT 'webhook', sku, born, epoch, ver, fingerprint, total, held, sold, state, deducted FROM sluice_cursor " +
		"WHERE sku = 'guide'")
	s.exec("CREATE TABLE orders (sku varchar(64), serial varchar(64), quantity bigint, paid_at bigint)")
	s.exec("INSERT INTO orders VALUES ('guide', 'guide-0', 1, 1), ('guide', 'guide-1', 1, 1)," +
		" ('guide', 'guide-2', 1, NULL), ('guide', 'guide-8', 1, 1)")
	if units, err := s.store.CountPaid(s.Context(), query, sku); units != 1 || err != nil {
		s.Errorf("%d units are paid, %v: want 1", units, err)
	}
}

// A transaction that wants a second connection waits for itself, or for others that do the same.
func TestStore_TransactionNeedsOneConnection(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, url string) {
		s := newSite(t, redistest.Start(t), url, sqlstore.Stock{})
		s.store.OneConnection()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.ledger.set("one", 5)
		s.ledger.buy("one", 0, 2)
		s.drain("one")
		for _, g := range []settle.Giveback{
			{SKU: "one", Serial: "one-0"}, {SKU: "one", Serial: "unknown"}, {SKU: "unknown", Serial: "one-0"},
		} {
			if _, _, err := s.store.GiveBack(ctx, g, settle.Position{}); err != nil {
				t.Errorf("give back %q of %q: %v", g.Serial, g.SKU, err)
			}
		}
		if err := s.store.Report(ctx, settle.Conflict{SKU: "one", Kind: "lost"}); err != nil {
			t.Error(err)
		}
	})
}
