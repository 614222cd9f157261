package sqlstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

// archives frees a SKU, or returns why not.
func (s *site) archives(sku string) error {
	s.Helper()
	_, ok, err := settle.Archive(s.Context(), s.stream, s.store, s.ledger.store, sku)
	if err == nil && !ok {
		s.Fatalf("%q has no ledger", sku)
	}
	return err
}

// archivesSettledSale frees the keys of a sale that is over only when every order is settled, and sells the SKU again.
func archivesSettledSale(s *site) {
	const sku = "archived"
	s.ledger.set(sku, 10)
	s.ledger.buy(sku, 0, 3)
	s.ledger.finish(sku, "refund", sku+"-0")
	s.drain(sku)
	if err := s.archives(sku); err == nil || !strings.Contains(err.Error(), "not over") {
		s.Errorf("a sale that is on: %v", err)
	}
	s.ledger.change(sku, ledger.Ended)
	if err := s.archives(sku); err == nil || !strings.Contains(err.Error(), "not settled yet") {
		s.Errorf("a change that is not settled: %v", err)
	}
	s.drain(sku)
	s.exec("UPDATE sluice_order SET quantity = 2 WHERE serial = '" + sku + "-1'")
	if err := s.archives(sku); err == nil || !strings.Contains(err.Error(), "differ") {
		s.Errorf("another quantity: %v", err)
	}
	s.exec("UPDATE sluice_order SET quantity = 1 WHERE serial = '" + sku + "-1'")
	if err := s.archives(sku); err != nil {
		s.Fatal(err)
	}
	if n := s.redis.Client.Exists(s.Context(), s.keys(sku)[1:4]...).Val(); n != 0 {
		s.Errorf("%d keys of orders are left in Redis", n)
	}
	earlier, _, _ := s.store.Cursor(s.Context(), sku)
	s.balances(sku, 0, 0)
	rows := 0
	_ = s.store.Orders(s.Context(), sku, earlier.Born, func(settle.Record) { rows++ })
	if rows != 3 {
		s.Errorf("the database has %d orders: want 3", rows)
	}
	if err := s.archives(sku); err != nil {
		s.Errorf("again: %v", err)
	}
	s.ledger.set(sku, 5)
	s.ledger.open(sku)
	s.ledger.buy(sku, 5, 2)
	s.balances(sku, 2, 3)
	s.redis.Client.XTrimMaxLen(s.Context(), "sluice:shop:{"+sku+"}:q", 1)
	s.ledger.buy(sku, 7, 1)
	s.balances(sku, 3, 2)
	if n := s.settler.Stats(); n.LostOrders != 0 || n.Frozen != 0 {
		s.Errorf("%+v: want no lost order", n)
	}
}

// archivesBehindTheSettler has no settler that sees the archived ledger before its stream is trimmed.
func archivesBehindTheSettler(s *site) {
	const sku = "unseen"
	s.ledger.set(sku, 10)
	s.ledger.buy(sku, 0, 3)
	s.ledger.change(sku, ledger.Ended)
	s.drain(sku)
	if err := s.archives(sku); err != nil {
		s.Fatal(err)
	}
	s.ledger.set(sku, 5)
	s.ledger.open(sku)
	s.ledger.buy(sku, 5, 2)
	s.redis.Client.XTrimMaxLen(s.Context(), "sluice:shop:{"+sku+"}:q", 1)
	s.balances(sku, 2, 3)
	if n := s.settler.Stats(); n.LostOrders != 0 || n.Rebuilds != 1 {
		s.Errorf("%+v: want no lost order, one rebuild", n)
	}
}

// rebuildsOnDemand mends rows, and solves what was parked.
func rebuildsOnDemand(s *site) {
	const sku = "rebuilt"
	s.ledger.set(sku, 10)
	s.ledger.buy(sku, 0, 3)
	s.drain(sku)
	remove := s.poison("rebuilt-7")
	s.ledger.buy(sku, 7, 1)
	s.drain(sku)
	remove()
	s.exec("UPDATE sluice_order SET quantity = 5 WHERE serial = '" + sku + "-0'")
	s.ledger.finish(sku, "refund", sku+"-2") // the settler has not seen that
	for range 2 {
		if told, err := s.settler.Rebuild(s.Context(), sku); err != nil || told {
			s.Fatalf("rebuild: %v, %v", told, err)
		}
	}
	for _, found := range s.conflicts(sku, "entry") {
		s.Errorf("a parked entry is not solved: %s", found)
	}
	c := s.equal(sku)
	if c.Booked != 3 || s.ledger.state(sku) != "on" {
		s.Errorf("%d booked, the SKU is %s: want 3, on", c.Booked, s.ledger.state(sku))
	}
	if _, err := s.settler.Rebuild(s.Context(), "never"); err == nil {
		s.Error("a SKU without a ledger is rebuilt")
	}
	s.ledger.freeze(sku)
	if _, err := s.settler.Rebuild(s.Context(), sku); err == nil || !strings.Contains(err.Error(), "sluice stock recover") {
		s.Errorf("a frozen SKU: %v", err)
	}
}

// deductsOrdersOfTheNextSale sells a SKU twice to the same users, whose orders have the same serials again: those of
// the second sale are other orders.
func deductsOrdersOfTheNextSale(t *testing.T, server *redistest.Server, url string) {
	s := newSite(t, server, url, sqlstore.Stock{Table: "next_stock", SKUColumn: "sku_id", LeftColumn: "num", Check: true})
	s.exec("CREATE TABLE next_stock (sku_id varchar(64) PRIMARY KEY, num bigint NOT NULL)")
	for _, sku := range []string{"next", "nextunseen"} {
		s.exec("INSERT INTO next_stock VALUES ('" + sku + "', 10)")
		s.ledger.set(sku, 3)
		s.ledger.buy(sku, 0, 3)
		s.ledger.change(sku, ledger.Ended)
		s.drain(sku)
		if err := s.archives(sku); err != nil {
			t.Fatal(err)
		}
		if sku == "next" {
			s.drain(sku)
		}
		s.ledger.set(sku, 5)
		s.ledger.open(sku)
		s.ledger.reserve(sku, sku+"-0", "u0", 1)
		if sku == "nextunseen" { // the ledger is read whole
			s.redis.Client.XTrimMaxLen(t.Context(), "sluice:shop:{"+sku+"}:q", 1)
		}
		s.drain(sku)
		s.ledger.finish(sku, "confirm", sku+"-0")
		s.drain(sku)
		s.ledger.buy(sku, 1, 2)
		s.balances(sku, 3, 4)
		s.cancels(sku, sku+"-1")
		s.givesBack(1)
		s.balances(sku, 2, 5)
	}
}

// archivesAgain has a Redis that has lost that a sale was archived, which is booked. An operator ends the sale again:
// the books of that sale are right, and it can be archived.
func archivesAgain(t *testing.T, server *redistest.Server, url string) {
	own := newSite(t, server, url, sqlstore.Stock{})
	shop := newSite(t, server, url,
		sqlstore.Stock{Table: "tail_stock", SKUColumn: "sku_id", LeftColumn: "num", Check: true})
	shop.exec("CREATE TABLE tail_stock (sku_id varchar(64) PRIMARY KEY, num bigint NOT NULL)")
	shop.exec("INSERT INTO tail_stock VALUES ('archived-shop', 10)")
	for sku, s := range map[string]*site{"archived-own": own, "archived-shop": shop} {
		g := s.gate("")
		g.set(sku, 10)
		g.buy(sku, 0, 3)
		g.change(sku, ledger.Ended)
		s.drain(sku)
		forget := s.dump(sku)
		if err := s.archives(sku); err != nil {
			t.Fatal(err)
		}
		s.drain(sku)
		forget()
		s.calls(g, sku, time.Now())
		if err := s.settler.Drain(t.Context(), sku); !errors.Is(err, settle.ErrBehind) {
			t.Errorf("%s: %v: want that Redis is older", sku, err)
		}
		g.change(sku, ledger.Ended)
		s.balances(sku, 3, 7)
		s.verifies(sku)
		s.noConflict(sku, "stock")
		s.cancels(sku, sku+"-0")
		s.givesBack(1)
		s.balances(sku, 2, 8)
		if err := s.archives(sku); err != nil {
			t.Error(err)
		}
	}
}
