package sqlstore_test

import (
	"errors"
	"testing"

	"sluice/internal/redistest"
	"sluice/settle"
	"sluice/settle/sqlstore"
)

func rebuildsTrimmedStream(s *site) {
	const sku = "trimmed"
	s.ledger.set(sku, 100)
	s.ledger.buy(sku, 0, 5)
	s.drain(sku)
	s.ledger.buy(sku, 5, 20)
	s.ledger.finish(sku, "refund", "trimmed-0")
	s.redis.Client.XTrimMaxLen(s.Context(), "sluice:shop:{"+sku+"}:q", 3)
	s.drain(sku)
	if n := s.settler.Stats().Rebuilds; n != 1 {
		s.Errorf("%d rebuilds: want 1", n)
	}
	s.equal(sku)
	s.ledger.buy(sku, 25, 2)
	s.drain(sku)
	if c := s.equal(sku); c.Booked != 26 || s.left(sku) != 74 {
		s.Errorf("%d booked, %d left: want 26, 74", c.Booked, s.left(sku))
	}
}

// keys are the keys of a ledger.
func (s *site) keys(sku string) (keys []string) {
	for _, part := range []string{"s", "r", "u", "x", "q"} {
		keys = append(keys, "sluice:shop:{"+sku+"}:"+part)
	}
	return keys
}

// dump returns a function that puts a ledger back to what it is now, as Redis does that has lost the end of its AOF.
func (s *site) dump(sku string) (forget func()) {
	dumps := map[string]string{}
	for _, key := range s.keys(sku) {
		if text, err := s.redis.Client.Dump(s.Context(), key).Result(); err == nil {
			dumps[key] = text
		}
	}
	return func() {
		s.redis.Client.Del(s.Context(), s.keys(sku)...)
		for key, text := range dumps {
			if err := s.redis.Client.Restore(s.Context(), key, 0, text).Err(); err != nil {
				s.Fatal(err)
			}
		}
		s.ledger.forget() // the gates died too
	}
}

func adoptsLostTail(s *site) {
	const sku = "tail"
	s.ledger.set(sku, 100)
	s.ledger.buy(sku, 0, 5)
	s.ledger.reserve(sku, "later", "u", 2)
	forget := s.dump(sku)
	s.ledger.finish(sku, "confirm", "later")
	s.ledger.buy(sku, 5, 10)
	s.drain(sku)
	forget()
	s.ledger.buy(sku, 20, 4) // ids come again
	s.drain(sku)
	if n := s.settler.Stats().LostOrders; n != 11 { // with the confirmation of later
		s.Errorf("%d lost orders: want 11", n)
	}
	if state := s.ledger.state(sku); state != "frozen" {
		s.Errorf("the SKU is %s: want frozen", state)
	}
	if len(s.conflicts(sku, "lost")) != 1 {
		s.Error("no conflict tells what was lost")
	}
	s.ledger.open(sku)
	s.drain(sku)
	s.ledger.buy(sku, 30, 1)
	s.drain(sku)
	if c := s.equal(sku); c.Booked != 22 || s.left(sku) != 78 {
		s.Errorf("%d booked, %d left: want 22, 78", c.Booked, s.left(sku))
	}
}

// countsLostRaise has a total that Redis has lost the raise of, so that more is sold than it, until it is raised again,
// or another ledger begins.
func countsLostRaise(s *site) {
	const sku = "lost-raise"
	loses := func(total int64, first, units int) { // of a raise, and of the orders behind it
		forget := s.dump(sku)
		s.ledger.set(sku, total)
		s.ledger.buy(sku, first, units)
		s.drain(sku)
		forget()
		s.drain(sku)
		s.ledger.open(sku)
	}
	s.ledger.set(sku, 3)
	s.ledger.buy(sku, 0, 3)
	loses(9, 3, 4)
	s.balances(sku, 7, 0)
	s.oneConflict(sku, "stock", "4 more units are booked than the total of 3")
	s.cancels(sku, sku+"-6")
	s.givesBack(1)
	s.balances(sku, 6, 0)
	s.ledger.set(sku, 9)
	s.balances(sku, 6, 3)
	s.noConflict(sku, "stock")
	s.ledger.buy(sku, 10, 1)
	s.ledger.finish(sku, "refund", sku+"-0")
	s.balances(sku, 6, 3)
	s.exec("UPDATE sluice_stock SET num = 77 WHERE sku = 'lost-raise'")
	s.ledger.buy(sku, 20, 1)
	s.balances(sku, 7, 2) // the table follows the orders
	loses(12, 30, 5)
	s.balances(sku, 12, 0)
	s.oneConflict(sku, "stock", "3 more units are booked than the total of 9")
	s.losesLedger(sku)
	s.ledger.set(sku, 4)
	s.balances(sku, 0, 4)
	s.noConflict(sku, "stock") // of a ledger that is gone
}

func noticesReusedIDs(s *site) {
	const sku = "reused"
	s.ledger.set(sku, 100)
	s.ledger.buy(sku, 0, 3)
	forget := s.dump(sku)
	s.ledger.buy(sku, 3, 2)
	s.drain(sku)
	forget()
	s.ledger.buy(sku, 20, 6) // beyond the cursor
	s.drain(sku)
	if n := s.settler.Stats().LostOrders; n != 2 {
		s.Errorf("%d lost orders: want 2", n)
	}
	s.ledger.open(sku)
	s.drain(sku)
	if c := s.equal(sku); c.Booked != 11 || s.left(sku) != 89 {
		s.Errorf("%d booked, %d left: want 11, 89", c.Booked, s.left(sku))
	}
}

// losesLedger deletes all of a ledger but its stream.
func (s *site) losesLedger(sku string) {
	s.redis.Client.Del(s.Context(), s.keys(sku)[:4]...)
	s.redis.Client.ZRem(s.Context(), "sluice:shop:skus", sku) // a SKU that was given up on purpose
	s.ledger.forget()
}

func beginsNewLedger(s *site) {
	const sku = "again"
	s.ledger.set(sku, 10)
	s.ledger.buy(sku, 0, 3)
	s.drain(sku)
	first, _, _ := s.store.Cursor(s.Context(), sku)
	s.losesLedger(sku)
	s.ledger.set(sku, 20)
	s.ledger.buy(sku, 0, 2)
	s.drain(sku)
	second, _, _ := s.store.Cursor(s.Context(), sku)
	if second.Born <= first.Born || s.left(sku) != 18 {
		s.Errorf("born %d after %d, %d left: want a later ledger, 18", second.Born, first.Born, s.left(sku))
	}
	s.equal(sku)
	old := 0
	_ = s.store.Orders(s.Context(), sku, first.Born, func(settle.Record) { old++ })
	if old != 3 {
		s.Errorf("%d orders of the first ledger: want 3", old)
	}
}

func trimsSettledEntries(s *site) {
	const sku = "settled"
	s.ledger.set(sku, 50)
	s.ledger.buy(sku, 0, 10)
	s.drain(sku)
	entries := must(s.stream.Entries(s.Context(), sku, settle.Position{}, 100))(s.T)
	cursor, _, _ := s.store.Cursor(s.Context(), sku)
	if len(entries) != 1 || entries[0].Position != cursor.Position {
		s.Errorf("%d entries stay: want the one at the cursor", len(entries))
	}
	s.ledger.buy(sku, 10, 10)
	// Another consumer acknowledges all: what is not settled stays.
	all := must(s.redis.Client.XRevRangeN(s.Context(), "sluice:shop:{"+sku+"}:q", "+", "-", 1).Result())(s.T)
	if err := s.ledger.Acknowledge(s.Context(), sku, all[0].ID); err != nil {
		s.Fatal(err)
	}
	s.drain(sku)
	if n := s.settler.Stats().Rebuilds; n != 0 {
		s.Errorf("%d rebuilds: want none, the stream was pinned", n)
	}
	s.equal(sku)
}

func rejectsOlderRedis(s *site) {
	const sku = "older"
	s.ledger.set(sku, 50)
	s.ledger.buy(sku, 0, 2)
	forget := s.dump(sku)
	s.ledger.freeze(sku)
	s.ledger.open(sku)
	s.ledger.buy(sku, 2, 2)
	s.drain(sku)
	before, _, _ := s.store.Cursor(s.Context(), sku)
	forget()
	for range 5 { // sluice stock recover SKU --from settle waits while a settler has something left to tell
		if err := s.settler.Drain(s.Context(), sku); !errors.Is(err, settle.ErrBehind) {
			s.Errorf("an older epoch: %v", err)
		}
	}
	if after, _, _ := s.store.Cursor(s.Context(), sku); after != before {
		s.Errorf("the cursor is %+v, and was %+v", after, before)
	}
	s.ledger.forget()
	if stock, _, err := s.ledger.store.ReadStock(s.Context(), sku); stock.State != "frozen" || stock.Untold != 0 {
		s.Errorf("the SKU is %s, and may have units that are sold; %d have something to tell, %v: want frozen, 0",
			stock.State, stock.Untold, err)
	}
	s.ledger.open(sku) // the settler tells what was lost then
	s.recovers(sku, 2)
	s.equal(sku)
	s.balances(sku, 4, 46)
}

// deductsAdoptedOnce follows docs/settlement-reference.md after the ledger is gone.
func deductsAdoptedOnce(t *testing.T, server *redistest.Server, url string) {
	s := newSite(t, server, url, sqlstore.Stock{Table: "anew_stock", SKUColumn: "sku_id", LeftColumn: "num", Check: true})
	const sku = "anew"
	s.exec("CREATE TABLE anew_stock (sku_id varchar(64) PRIMARY KEY, num bigint NOT NULL)")
	s.exec("INSERT INTO anew_stock VALUES ('anew', 10)")
	s.ledger.set(sku, 10)
	s.ledger.buy(sku, 0, 3)
	s.drain(sku)
	c, _, _ := s.store.Cursor(t.Context(), sku)
	var orders []settle.Record
	_ = s.store.Orders(t.Context(), sku, c.Born, func(r settle.Record) { orders = append(orders, r) })
	s.losesLedger(sku)
	if err := s.settler.Drain(t.Context(), sku); err != nil && !errors.Is(err, settle.ErrNoLedger) {
		t.Fatal(err)
	}
	s.ledger.set(sku, 0)
	if err := s.ledger.Adopt(t.Context(), sku, orders); err != nil {
		t.Fatal(err)
	}
	s.ledger.set(sku, 10)
	s.balances(sku, 3, 7)
	s.ledger.buy(sku, 5, 1)
	s.cancels(sku, "anew-0")
	s.givesBack(1)
	s.balances(sku, 3, 7)
}
