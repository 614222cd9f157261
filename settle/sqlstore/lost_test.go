package sqlstore_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

// is wants an order to have a status in Redis and in the database.
func (s *site) is(sku, serial string, status ledger.Status) {
	s.Helper()
	if r := must(s.stream.Records(s.Context(), sku))(s.T)[serial]; r.Status != status {
		s.Errorf("Redis has the order %s as %q: want %q", serial, r.Status, status)
	}
	c, _, _ := s.store.Cursor(s.Context(), sku)
	found := ledger.StatusNone
	_ = s.store.Orders(s.Context(), sku, c.Born, func(r settle.Record) {
		if r.Serial == serial {
			found = r.Status
		}
	})
	if found != status {
		s.Errorf("the database has the order %s as %q: want %q", serial, found, status)
	}
}

// recovers settles after a loss, which freezes the SKU. It opens by itself when the settler has told what it knows.
func (s *site) recovers(sku string, orders int64) {
	s.Helper()
	s.drain(sku)
	if state := s.ledger.state(sku); state != "frozen" {
		s.Errorf("the SKU is %s: want frozen", state)
	}
	if n := s.settler.Stats().LostOrders; n != orders {
		s.Errorf("%d lost orders: want %d", n, orders)
	}
	if len(s.conflicts(sku, "lost")) != 1 {
		s.Errorf("conflicts %q: want one", s.conflicts(sku, "lost"))
	}
	s.ledger.store.Settle = 0
	s.until("all have told, and the SKU is on", func() bool {
		s.drain(sku)
		return s.ledger.state(sku) == "on"
	})
	s.drain(sku)
}

// soldOut wants the ledger to have no unit to sell.
func (s *site) soldOut(sku string) {
	s.Helper()
	codes, now := make([]ledger.Code, 1), time.Now().UnixMilli()
	_, err := s.ledger.store.Reserve(s.Context(), sku, s.ledger.epoch(sku), now, now+time.Hour.Milliseconds(),
		[]ledger.Item{{Serial: "beyond", User: "bob", Quantity: 1}}, codes)
	if err != nil || codes[0] == ledger.Held {
		s.Errorf("a unit is sold twice: code %d, %v", codes[0], err)
	}
}

func confirmsAgain(s *site) {
	const sku = "lostconfirm"
	s.ledger.set(sku, 1)
	s.ledger.reserve(sku, "paid", "alice", 1)
	forget := s.dump(sku)
	s.ledger.finish(sku, "confirm", "paid")
	s.drain(sku)
	forget()
	s.recovers(sku, 1)
	s.is(sku, "paid", 'C')
	s.soldOut(sku)
	s.balances(sku, 1, 0)
}

// leavesReleased has a reservation that was released before the settler saw that its confirmation was lost: the shop
// had no such order any more. What is released stays so.
func leavesReleased(s *site) {
	const sku = "lostreleased"
	s.ledger.set(sku, 2)
	s.ledger.reserve(sku, "ran-out", "alice", 1)
	forget := s.dump(sku)
	s.ledger.finish(sku, "confirm", "ran-out")
	s.drain(sku)
	forget()
	s.ledger.finish(sku, "release", "ran-out")
	s.ledger.buy(sku, 1, 1)
	s.drain(sku)
	s.is(sku, "ran-out", 'X')
	s.balances(sku, 1, 1)
}

func refundsAgain(s *site) {
	const sku = "lostrefund"
	s.ledger.set(sku, 1)
	s.ledger.buy(sku, 0, 1)
	s.drain(sku)
	forget := s.dump(sku)
	s.cancels(sku, sku+"-0")
	s.givesBack(1)
	s.drain(sku)
	s.ledger.buy(sku, 1, 1) // the same unit
	s.drain(sku)
	forget()
	s.recovers(sku, 2)
	s.givesBack(0)
	s.is(sku, sku+"-0", 'R')
	s.is(sku, sku+"-1", 'C')
	s.soldOut(sku)
	s.balances(sku, 1, 0)
}

func givesBackAgain(s *site) {
	const sku = "lostgiveback"
	s.ledger.set(sku, 3)
	s.ledger.buy(sku, 0, 2)
	s.drain(sku)
	forget := s.dump(sku)
	s.cancels(sku, sku+"-0")
	s.givesBack(1)
	s.ledger.finish(sku, "refund", sku+"-1") // by the API
	s.drain(sku)
	forget()
	s.recovers(sku, 2)
	s.is(sku, sku+"-0", 'R')
	s.is(sku, sku+"-1", 'R')
	s.balances(sku, 0, 3)
}

// followsNewRefund has a refund after Redis lost another order: the ledger knows that newer.
func followsNewRefund(s *site) {
	const sku = "newrefund"
	s.ledger.set(sku, 9)
	s.ledger.buy(sku, 0, 2)
	s.drain(sku)
	forget := s.dump(sku)
	s.ledger.buy(sku, 2, 2)
	s.drain(sku)
	forget()
	s.ledger.finish(sku, "refund", sku+"-0")
	s.recovers(sku, 2)
	s.is(sku, sku+"-0", 'R')
	s.balances(sku, 3, 6)
}

// holdsAgain has reservations that Redis lost. The ledger holds them again until they are decided.
func holdsAgain(s *site) {
	const sku = "losthold"
	s.ledger.set(sku, 3)
	s.ledger.reserve(sku, "known", "carol", 1)
	forget := s.dump(sku)
	s.ledger.reserve(sku, "paid", "alice", 1)
	s.ledger.reserve(sku, "left", "bob", 1)
	s.drain(sku)
	forget()
	s.recovers(sku, 2)
	s.is(sku, "paid", 'H')
	s.is(sku, "left", 'H')
	s.soldOut(sku)
	s.ledger.finish(sku, "confirm", "paid")
	s.ledger.finish(sku, "release", "left")
	s.ledger.finish(sku, "release", "known")
	s.balances(sku, 1, 2)
	s.noConflict(sku, "missing")
}

// asksAboutForgotten has a reservation whose end was trimmed before it was settled, and that the ledger has forgotten.
func asksAboutForgotten(s *site) {
	const sku = "forgotten"
	s.ledger.set(sku, 3)
	s.ledger.reserve(sku, "gone", "alice", 1)
	s.drain(sku)
	s.ledger.finish(sku, "release", "gone")
	s.ledger.buy(sku, 0, 1)
	s.redis.Client.HDel(s.Context(), "sluice:shop:{"+sku+"}:r", "gone")
	s.redis.Client.ZRem(s.Context(), "sluice:shop:{"+sku+"}:x", "gone")
	s.redis.Client.XTrimMaxLen(s.Context(), "sluice:shop:{"+sku+"}:q", 1)
	s.drain(sku)
	if state := s.ledger.state(sku); state != "on" || len(s.conflicts(sku, "missing")) != 0 {
		s.Errorf("the SKU is %s, conflicts %q: want on, none", state, s.conflicts(sku, "missing"))
	}
	s.is(sku, "gone", 'H')
	due := s.redis.Client.ZScore(s.Context(), "sluice:shop:{"+sku+"}:x", "gone").Val()
	if due < 1 || due > float64(time.Now().UnixMilli()) {
		s.Errorf("the resolver looks at the reservation at %.0f", due)
	}
	s.ledger.finish(sku, "release", "gone") // the shop has no such order
	s.balances(sku, 1, 2)
	s.is(sku, "gone", 'X')
}

// misses sells an order, and has an operator make the ledger again without the reservation "undecided".
func (s *site) misses(sku string) {
	s.Helper()
	s.ledger.set(sku, 5)
	s.ledger.buy(sku, 0, 1)
	s.ledger.reserve(sku, "undecided", "bob", 2)
	s.drain(sku)
	time.Sleep(time.Second) // an epoch is a second: no ledger is lost in the second in which it was made
	s.redis.Client.Del(s.Context(), s.keys(sku)...)
	s.ledger.forget()
	if _, err := s.ledger.store.Recreate(s.Context(), sku, 5, 0, false); err != nil {
		s.Fatal(err)
	}
	s.drain(sku) // the sold order is told
	s.ledger.open(sku)
	s.drain(sku)
}

// keepsMissing has a reservation of a ledger that an operator has made again without it.
func keepsMissing(s *site) {
	const sku = "made-again"
	s.misses(sku)
	found := s.conflicts(sku, "missing")
	if len(found) != 1 || !strings.Contains(found[0], "2 units of 1 orders are known to the database alone") ||
		!strings.Contains(found[0], `the ledger has 1 units sold and 0 held`) ||
		!strings.Contains(found[0], `"undecided"`) {
		s.Errorf("conflicts %q: want one, with the numbers of both sides and the order", found)
	}
	missing := 0
	c, _, _ := s.store.Cursor(s.Context(), sku)
	_ = s.store.Orders(s.Context(), sku, c.Born, func(r settle.Record) {
		if r.Missing {
			missing++
		}
	})
	if left := s.left(sku); missing != 1 || left != 4 {
		s.Errorf("%d rows are missing, %d units are left: want 1, 4", missing, left)
	}
}

// givesBackMissing has the shop refund what the database alone knows, as the conflict says.
func givesBackMissing(s *site) {
	const sku, sold = "missing-back", "missing-sold"
	s.misses(sku)
	c, _, _ := s.store.Cursor(s.Context(), sku)
	s.exec(fmt.Sprintf("INSERT INTO sluice_order (sku, born, serial, buyer, quantity, status, epoch, ver, at, taken, "+
		"missing) SELECT sku, born, '%s', buyer, 1, 'C', epoch, 1, at, 1, missing FROM sluice_order "+
		"WHERE sku = '%s' AND serial = 'undecided'", sold, sku))
	s.exec(fmt.Sprintf("UPDATE sluice_cursor SET deducted = deducted + 1 WHERE sku = '%s'", sku))
	s.exec(fmt.Sprintf("UPDATE sluice_stock SET num = num - 1 WHERE sku = '%s'", sku))
	s.oneConflict(sku, "missing", "sluice_giveback")
	s.cancels(sku, "undecided")
	s.cancels(sku, sold)
	s.givesBack(2)
	s.givesBack(0)
	s.exec("UPDATE sluice_giveback SET due = 0, asked = asked - 7200000 WHERE done IS NULL AND sku = 'missing-back'")
	s.givesBack(0)
	s.verifies(sku)
	s.noConflict(sku, "missing")
	s.noConflict(sku, "giveback")
	refunded := 0
	_ = s.store.Orders(s.Context(), sku, c.Born, func(r settle.Record) {
		if r.Status == ledger.StatusRefunded && !r.Missing {
			refunded++
		}
	})
	if refunded != 2 {
		s.Errorf("%d orders are refunded: want 2", refunded)
	}
	s.balances(sku, 1, 4)
}

// settlesRemadeBehind has a ledger that was made again while the clock of Redis was behind: what is settled is of a
// later epoch. It is settled as soon as an operator opens it.
func settlesRemadeBehind(s *site) {
	const sku, day = "made-behind", 24 * 3600 * 1000
	s.ledger.set(sku, 5)
	s.redis.Client.HIncrBy(s.Context(), s.keys(sku)[0], "epoch", day)
	s.ledger.buy(sku, 0, 1)
	s.drain(sku)
	s.redis.Client.Del(s.Context(), s.keys(sku)...)
	s.ledger.forget()
	if _, err := s.ledger.store.Recreate(s.Context(), sku, 5, 0, false); err != nil {
		s.Fatal(err)
	}
	if err := s.settler.Drain(s.Context(), sku); err == nil || !strings.Contains(err.Error(), "sluice stock recover "+sku) {
		s.Errorf("it is frozen, and behind what is settled: %v", err)
	}
	s.ledger.open(sku)
	s.drain(sku)
	s.ledger.open(sku)
	s.drain(sku)
	s.equal(sku)
	s.balances(sku, 1, 4)
}

// keepsAdopted has a refunded order that was adopted: the row follows, and so it does where the stream is read whole.
// What is given back after that stays so, whichever side lost it.
func keepsAdopted(s *site) {
	const sku = "adopted"
	s.ledger.set(sku, 1)
	s.ledger.buy(sku, 0, 1)
	s.ledger.finish(sku, "refund", sku+"-0")
	s.drain(sku)
	adopted := settle.Record{Serial: sku + "-0", User: "u0", Quantity: 1}
	if err := s.ledger.Adopt(s.Context(), sku, []settle.Record{adopted}); err != nil {
		s.Fatal(err)
	}
	before := must(s.stream.Ledgers(s.Context(), []string{sku}))(s.T)[0]
	s.redis.Client.XTrimMaxLen(s.Context(), "sluice:shop:{"+sku+"}:q", 0)
	s.redis.Client.Do(s.Context(), "XADD", "sluice:shop:{"+sku+"}:q", before.Position.String()+"0", "op", "state",
		"total", "1",
		"held", "0", "sold", "1", "state", "on")
	s.redis.Client.HSet(s.Context(), "sluice:shop:{"+sku+"}:s", "ver", before.Ver*10)
	s.drain(sku)
	s.is(sku, sku+"-0", 'C')
	s.balances(sku, 1, 0)
	forget := s.dump(sku)
	s.cancels(sku, sku+"-0")
	s.givesBack(1)
	s.drain(sku)
	s.ledger.buy(sku, 1, 1)
	s.drain(sku)
	forget()
	s.recovers(sku, 2)
	s.is(sku, sku+"-0", 'R')
	s.is(sku, sku+"-1", 'C')
	s.balances(sku, 1, 0)
}

// poison makes the database reject the rows of a serial, by a trigger as a shop may have it.
func (s *site) poison(serial string) (remove func()) {
	s.Helper()
	drop := "DROP TRIGGER poison"
	switch {
	case strings.HasPrefix(s.url, "sqlite"):
		s.exec("CREATE TRIGGER poison BEFORE INSERT ON sluice_order WHEN NEW.serial LIKE '" + serial +
			"' BEGIN SELECT RAISE(ABORT, 'poison'); END")
	case strings.HasPrefix(s.url, "mysql"):
		s.exec("CREATE TRIGGER poison BEFORE INSERT ON sluice_order FOR EACH ROW " +
			"IF NEW.serial LIKE '" + serial + "' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'poison'; END IF")
	default:
		s.exec("CREATE OR REPLACE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS " +
			"$$ BEGIN RAISE EXCEPTION 'poison'; END $$")
		s.exec("CREATE TRIGGER poison BEFORE INSERT ON sluice_order FOR EACH ROW " +
			"WHEN (NEW.serial LIKE '" + serial + "') EXECUTE FUNCTION poison()")
		drop += " ON sluice_order"
	}
	return func() { s.Helper(); s.exec(drop) }
}

// parksPoisonInRebuild has a ledger that is read whole, and records that the database rejects.
func parksPoisonInRebuild(s *site) {
	const sku = "px"
	s.ledger.set(sku, 100)
	s.ledger.buy(sku, 0, 5)
	s.ledger.reserve(sku, "px-7", "u", 1) // its row is there, and cannot be changed
	s.drain(sku)
	remove := s.poison("px-7%")
	s.ledger.finish(sku, "confirm", "px-7")
	s.ledger.buy(sku, 10, 5)
	s.ledger.buy(sku, 70, 1)
	s.redis.Client.XTrimMaxLen(s.Context(), "sluice:shop:{"+sku+"}:q", 1)
	s.drain(sku)
	s.ledger.buy(sku, 20, 3)
	s.drain(sku)
	if s.left(sku) != 87 || len(s.conflicts(sku, "missing")) != 0 {
		s.Errorf("%d units are left, conflicts %q: want 87, none", s.left(sku), s.conflicts(sku, "missing"))
	}
	parked := s.conflicts(sku, "entry")
	if len(parked) != 1 || !strings.Contains(parked[0], `"r:px-7"`) || !strings.Contains(parked[0], `"r:px-70"`) ||
		strings.Contains(parked[0], "px-1") {
		s.Fatalf("conflicts %q: want one with both orders, and no other", parked)
	}
	if s.retryParked(sku) == nil {
		s.Error("an entry that the database still rejects is solved")
	}
	remove()
	if err := s.retryParked(sku); err != nil {
		s.Error(err)
	}
	s.balances(sku, 15, 85)
}

// retryParked retries the only parked entry of a SKU.
func (s *site) retryParked(sku string) error {
	s.Helper()
	for _, c := range must(s.store.Conflicts(s.Context(), 1000))(s.T) {
		if c.SKU == sku && c.Kind == "entry" {
			_, err := settle.Retry(s.Context(), s.store, must(s.store.Conflict(s.Context(), c.ID))(s.T))
			return err
		}
	}
	s.Fatalf("no entry of %q is parked", sku)
	return nil
}

// parksPoisonAlone has an order that the database rejects among others of one batch.
func parksPoisonAlone(s *site) {
	const sku = "alone"
	s.ledger.set(sku, 100)
	remove := s.poison("alone-2")
	s.ledger.buy(sku, 0, 3)
	s.drain(sku)
	remove()
	if parked := s.conflicts(sku, "entry"); len(parked) == 0 || s.left(sku) != 98 {
		s.Errorf("conflicts %q, %d units are left: want the order, 98", parked, s.left(sku))
	}
}

// A master of before, in the first epoch of the ledger, has lost what is settled, and an instance that knows a later
// epoch has closed it. What the settler finds then does not make the ledger one that is gone.
func TestLost_LedgerOfAnOlderMasterIsNotGone(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), sqlstore.Stock{})
	const sku = "older-master"
	g := s.gate("")
	g.set(sku, 5)
	g.buy(sku, 0, 1)
	s.drain(sku)
	older := s.dump(sku)
	s.givesBackByTable(sku, sku+"-0") // the last that the settler sees
	g.freeze(sku)
	g.open(sku) // a later epoch
	older()
	s.calls(g, sku, time.Now())
	why := func() string {
		all := s.redis.Client.HMGet(t.Context(), s.keys(sku)[0], "state", "why", "born", "epoch").Val()
		return fmt.Sprint(all)
	}
	before := why()
	if !strings.HasPrefix(before, "[frozen version ") {
		t.Fatalf("state, why, born and epoch are %s: want it frozen by its version", before)
	}
	s.drain(sku)
	if after := why(); after != before {
		t.Errorf("state, why, born and epoch are %s after the settler has told it: want %s", after, before)
	}
	s.is(sku, sku+"-0", 'R')
}

// A Redis that comes back older has lost thousands of orders. A person reads the conflict, and needs few of them.
func TestLost_ConflictOfManyOrdersIsShort(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), sqlstore.Stock{})
	const sku, orders = "many", 100
	g := s.gate("")
	g.set(sku, orders)
	older := s.dump(sku)
	g.buy(sku, 0, orders)
	s.drain(sku)
	older()
	s.drain(sku)
	s.oneConflict(sku, "lost", "100 orders were sold", `"many-0"`, "and 80 more")
}

// In a cluster the registry of SKUs is on a node of its own. That one loses its last second, in which a SKU was made;
// the ledger, on another node, is whole, and instances go on selling. The SKU is settled all the same.
func TestLost_SKUThatTheRegistryHasLostIsSettled(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), sqlstore.Stock{})
	const sku = "unlisted"
	g := s.gate("")
	g.set(sku, 5)
	s.redis.Client.ZRem(t.Context(), "sluice:shop:skus", sku) // its node has failed over
	g.buy(sku, 0, 4)
	s.runs(s.settler)
	if err := g.store.NoteLost(t.Context(), nil); err != nil { // a gate does so every few seconds
		t.Fatal(err)
	}
	s.until("what is sold is settled", func() bool {
		c, _, err := s.store.Cursor(t.Context(), sku)
		return err == nil && c.Sold == 4
	})
}
