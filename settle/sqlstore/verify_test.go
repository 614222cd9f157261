package sqlstore_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/redistest"
	"sluice/settle"
	"sluice/settle/sqlstore"
)

// verifies verifies a SKU until there is nothing to be looked at again.
func (s *site) verifies(sku string) {
	s.Helper()
	s.ledger.store.Settle = 0 // a ledger that was told opens at once
	s.until(sku+" need not be verified again", func() bool {
		again := must(s.settler.VerifySKU(s.Context(), sku))(s.T)
		if again {
			s.drain(sku)
		}
		return !again
	})
}

// repairsRows has rows that were edited by hand. The ledger is right, and the database follows it.
func repairsRows(s *site) {
	const sku = "edited"
	s.ledger.set(sku, 30)
	s.ledger.buy(sku, 0, 6)
	s.ledger.reserve(sku, "two", "bob", 2)
	s.ledger.finish(sku, "confirm", "two")
	s.ledger.reserve(sku, "held", "carol", 1)
	s.ledger.buy(sku, 7, 1)
	s.ledger.finish(sku, "refund", sku+"-7")
	s.drain(sku)
	s.balances(sku, 8, 22)
	row := func(set, serial string) string {
		return "UPDATE sluice_order SET " + set + " WHERE sku = 'edited' AND serial = '" + serial + "'"
	}
	for _, edit := range []string{
		row("status = 'H'", "edited-0"), row("status = 'H', taken = 0", "edited-2"),
		"DELETE FROM sluice_order WHERE sku = 'edited' AND serial = 'edited-3'",
		"DELETE FROM sluice_order WHERE sku = 'edited' AND serial = 'held'",
		row("quantity = 5", "two"), row("quantity = 1", "two"),
		row("status = 'X'", "held"), row("status = 'H'", "edited-7"),
	} {
		s.exec(edit)
		if c, _, _ := settle.Verify(s.Context(), s.stream, s.store, sku); len(c.Differences) == 0 {
			s.Errorf("%s: no difference", edit)
		}
		s.verifies(sku)
		if c, left := s.equal(sku), s.left(sku); c.Booked != 8 || left != 22 {
			s.Errorf("%s: %d booked, %d left: want 8, 22", edit, c.Booked, left)
		}
	}
	s.isOn(sku)
	s.noConflict(sku, "difference")
	s.exec("UPDATE sluice_stock SET num = 21 WHERE sku = 'edited'")
	s.verifies(sku)
	s.oneConflict(sku, "stock", "has 21 units left, and 22 ")
	s.exec("UPDATE sluice_stock SET num = 22 WHERE sku = 'edited'")
	s.verifies(sku)
	s.noConflict(sku, "stock") // the stock is right
}

// tellsRows has a row that says more than the ledger knows: it takes units, and sells none of them twice. What the ledger
// has as released stays so.
func tellsRows(s *site) {
	const sku = "rows-say"
	s.ledger.set(sku, 2)
	s.ledger.buy(sku, 0, 1)
	s.ledger.reserve(sku, "released", "bob", 1)
	s.ledger.finish(sku, "release", "released")
	s.drain(sku)
	s.exec("UPDATE sluice_order SET status = 'C' WHERE sku = 'rows-say' AND serial = 'released'")
	s.redis.Client.HDel(s.Context(), "sluice:shop:{"+sku+"}:r", sku+"-0") // a record that Redis alone has lost
	s.redis.Client.HSet(s.Context(), "sluice:shop:{"+sku+"}:s", "sold", 0)
	s.redis.Client.HDel(s.Context(), "sluice:shop:{"+sku+"}:u", "u0")
	s.verifies(sku) // the ledger is told, and opens
	s.verifies(sku)
	s.is(sku, "released", 'X')
	s.is(sku, sku+"-0", 'C')
	s.isOn(sku) // all have told
	s.balances(sku, 1, 1)
	s.noConflict(sku, "lost") // the SKU is open, and both books are equal
	s.ledger.reserve(sku, "last", "dan", 1)
	s.soldOut(sku)
}

// leavesFinalRows has rows that say that an order was given back, and a ledger that has it as sold. What is refunded the
// ledger refunds, since the shop has said so; what is released an operator decides.
func leavesFinalRows(s *site) {
	const sku = "final"
	s.ledger.set(sku, 9)
	s.ledger.buy(sku, 0, 4)
	s.drain(sku)
	s.cancels(sku, sku+"-0")
	due := must(s.store.Due(s.Context(), 1))(s.T)
	s.refunds(due[0])
	if err := s.store.Done(s.Context(), due[0], "refunded"); err != nil { // and Redis has lost it
		s.Fatal(err)
	}
	s.verifies(sku)
	s.is(sku, sku+"-0", 'R')
	s.isOn(sku)
	s.balances(sku, 3, 6)
	s.exec("UPDATE sluice_order SET status = 'X' WHERE sku = 'final' AND serial = 'final-1'")
	s.exec("UPDATE sluice_order SET status = 'H' WHERE sku = 'final' AND serial = 'final-2'")
	s.verifies(sku)
	s.is(sku, sku+"-2", 'C') // the others are repaired
	s.oneConflict(sku, "difference", "1 orders differ", "the database has them as released", "final-1")
	_ = must(s.settler.Rebuild(s.Context(), sku))(s.T) // an operator has looked
	s.is(sku, sku+"-1", 'C')
	s.verifies(sku)
	s.noConflict(sku, "difference")
	s.balances(sku, 3, 6)
}

// reportsUnproven has a ledger that knows fewer units of an order than the stock table was lowered by.
func reportsUnproven(s *site) {
	const sku = "unproven"
	s.ledger.set(sku, 9)
	s.ledger.reserve(sku, "two", "bob", 2)
	s.ledger.finish(sku, "confirm", "two")
	s.ledger.buy(sku, 0, 1)
	s.drain(sku)
	record := s.redis.Client.HGet(s.Context(), "sluice:shop:{"+sku+"}:r", "two").Val()
	s.edits(sku, "two", strings.Replace(record, "C|2", "C|1", 1))
	s.exec("UPDATE sluice_order SET status = 'H' WHERE sku = 'unproven' AND serial = 'unproven-0'")
	for range 2 { // a second pass adds no second conflict
		s.verifies(sku)
		s.oneConflict(sku, "difference", "2 orders differ", `"two": ledger sold 1 of "bob", database sold 2 of "bob"`,
			"3 units are sold by the ledger, 2 are booked")
	}
	if left := s.left(sku); left != 6 {
		s.Errorf("%d units are left: want 6, none was returned", left)
	}
	s.edits(sku, "two", record)
	s.verifies(sku)
	s.noConflict(sku, "difference")
	s.balances(sku, 3, 6)
}

// looksTwice has a difference that is gone when it is looked at again.
func looksTwice(s *site) {
	const sku = "twice"
	s.ledger.set(sku, 9)
	s.ledger.buy(sku, 0, 1)
	s.drain(sku)
	s.exec("UPDATE sluice_order SET status = 'X' WHERE sku = 'twice'")
	if again, err := s.settler.VerifySKU(s.Context(), sku); err != nil || !again {
		s.Errorf("%v, %v: want another look", again, err)
	}
	if c, _, _ := settle.Verify(s.Context(), s.stream, s.store, sku); len(c.Differences) != 1 {
		s.Errorf("%+v: want the difference, no repair yet", c)
	}
	s.exec("UPDATE sluice_order SET status = 'C' WHERE sku = 'twice'")
	s.verifies(sku)
	if n := s.settler.Stats().Repairs; n != 0 {
		s.Errorf("%d repairs: want none", n)
	}
	s.balances(sku, 1, 8)
}

// leavesGivebacks has an order that the database has given back already, and the ledger not yet.
func leavesGivebacks(s *site) {
	const sku = "on-its-way"
	s.ledger.set(sku, 9)
	s.ledger.buy(sku, 0, 2)
	s.drain(sku)
	s.cancels(sku, sku+"-0")
	due := must(s.store.Due(s.Context(), 1))(s.T)
	s.refunds(due[0])
	s.verifies(sku)
	if left := s.left(sku); left != 8 {
		s.Errorf("%d units are left: want 8", left)
	}
	s.noConflict(sku, "difference")
	s.givesBack(1)
	s.balances(sku, 1, 8)
}

// leavesParked has an order that the database does not take: its conflict is there, and other rows stay as they are.
func leavesParked(s *site) {
	const sku = "parked-once"
	s.ledger.set(sku, 9)
	remove := s.poison("parked-once-1")
	s.ledger.buy(sku, 0, 2)
	s.drain(sku)
	parked := len(s.conflicts(sku, "entry"))
	s.verifies(sku)
	remove()
	if found := s.conflicts(sku, "entry"); len(found) != parked {
		s.Errorf("conflicts %q: want those of before", found)
	}
	s.noConflict(sku, "difference")
	_ = must(s.settler.Rebuild(s.Context(), sku))(s.T)
	s.verifies(sku)
	s.balances(sku, 2, 7)
}

// reportsExtra has an order of the shop that took no unit, and one that was on its way when the first look was made.
func reportsExtra(s *site) {
	const sku = "extra"
	s.exec("CREATE TABLE extra_orders (sku varchar(64), serial varchar(64), quantity bigint)")
	s.settler = must(settle.New(s.stream, s.store, settle.Options{
		Batch: 7, Ledger: s.ledger, Log: slog.New(slog.DiscardHandler), Auditor: s.store,
		Shop: func(ctx context.Context, sku string, born int64) ([]settle.ShopOrder, error) {
			return s.store.CompareShop(ctx, "SELECT serial, quantity FROM extra_orders WHERE sku = :sku", sku, born)
		},
	}))(s.T)
	s.ledger.set(sku, 9)
	s.ledger.buy(sku, 0, 2) // the shop has lost the first one, which is no matter here
	s.ledger.reserve(sku, "held", "h", 1)
	s.drain(sku)
	s.exec("INSERT INTO extra_orders VALUES ('extra', 'extra-1', 1), ('extra', 'held', 1), ('extra', 'unknown', 3), " +
		"('extra', 'extra-2', 1)")
	s.verifies(sku)
	s.noConflict(sku, "extra") // by one look
	s.ledger.buy(sku, 2, 1)
	s.drain(sku)
	s.verifies(sku)
	found := s.oneConflict(sku, "extra", "3 units of 1 orders of the shop were taken from no ledger, which has 3 units "+
		"sold and 1 held of 9;")
	if !strings.HasSuffix(found, `"unknown": the shop has 3, the ledger 0`) {
		s.Errorf("conflict %q: want the order alone", found)
	}
	s.exec("DELETE FROM extra_orders WHERE serial = 'unknown'")
	s.verifies(sku)
	s.noConflict(sku, "extra") // the order was cancelled
	s.exec("INSERT INTO extra_orders VALUES ('extra', 'bad', NULL), ('extra', NULL, 1), ('extra', 'late', 1)")
	s.exec("UPDATE sluice_stock SET num = num + 1 WHERE sku = 'extra'")
	for range 2 {
		_, err := s.settler.VerifySKU(s.Context(), sku)
		if !errors.Is(err, settle.ErrShopRow) || !strings.Contains(err.Error(), "2 rows") {
			s.Errorf("rows with NULL: %v", err)
		}
	}
	s.oneConflict(sku, "extra", `"late": the shop has 1`)
	s.oneConflict(sku, "stock")
	s.exec("DROP TABLE extra_orders")
	if _, err := s.settler.VerifySKU(s.Context(), sku); err == nil {
		s.Error("the shop's orders are away, and that is no error")
	}
	s.oneConflict(sku, "extra")
}

// solvesMissing has a missing order that was adopted since.
func solvesMissing(s *site) {
	const sku = "found-again"
	s.ledger.set(sku, 9)
	s.ledger.buy(sku, 0, 1)
	s.drain(sku)
	s.exec("INSERT INTO sluice_order (sku, born, serial, buyer, quantity, status, epoch, ver, at, missing) SELECT sku, " +
		"born, 'old', buyer, 1, 'H', epoch, 1, at, CURRENT_TIMESTAMP FROM sluice_order WHERE sku = 'found-again'")
	c, _, _ := s.store.Cursor(s.Context(), sku)
	err := s.store.Report(s.Context(), settle.Conflict{SKU: sku, Position: c.Position, Kind: "missing", Detail: "old"})
	if err != nil {
		s.Fatal(err)
	}
	s.verifies(sku)
	s.oneConflict(sku, "missing")
	if err := s.ledger.Adopt(s.Context(), sku, []settle.Record{{Serial: "old", User: "u0", Quantity: 1}}); err != nil {
		s.Fatal(err)
	}
	s.drain(sku)
	s.verifies(sku)
	s.noConflict(sku, "missing") // the order is known
	s.balances(sku, 2, 7)
}

// solvesStock has orders that the shop's table had too few units for, and an operator who has corrected it.
func solvesStock(t *testing.T, server *redistest.Server, url string) {
	s := newSite(t, server, url, sqlstore.Stock{Table: "few_stock", SKUColumn: "sku_id", LeftColumn: "num", Check: true})
	const sku = "few"
	s.exec("CREATE TABLE few_stock (sku_id varchar(64) PRIMARY KEY, num bigint NOT NULL)")
	s.exec("INSERT INTO few_stock VALUES ('few', 2)")
	s.ledger.set(sku, 9)
	s.ledger.buy(sku, 0, 3)
	s.drain(sku)
	s.verifies(sku)
	s.oneConflict(sku, "stock", "3 units were to be deducted, and the stock table has 2;", `"few-0", "few-1", "few-2"`)
	s.exec("UPDATE few_stock SET num = 4 WHERE sku_id = 'few'") // a delivery of 5, and 3 are sold
	for _, c := range must(s.store.Conflicts(t.Context(), 100))(t) {
		if c.SKU == sku {
			_ = must(settle.Solve(t.Context(), s.store, c.ID))(t)
			if _, err := settle.Solve(t.Context(), s.store, c.ID); err == nil {
				t.Error("a conflict is solved twice")
			}
		}
	}
	s.balances(sku, 3, 4)
	s.ledger.finish(sku, "refund", sku+"-0")
	s.balances(sku, 2, 5)
}

func TestVerify_Repairs(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, url string) {
		server := redistest.Start(t)
		for name, rule := range map[string]func(*site){
			"rows that were edited follow the ledger":     repairsRows,
			"what rows say more the ledger is told":       tellsRows,
			"what was given back stays so":                leavesFinalRows,
			"units are not returned without a proof":      reportsUnproven,
			"an order of the shop without a unit is told": reportsExtra,
			"an order on its way back is no difference":   leavesGivebacks,
			"what one look alone has seen is no matter":   looksTwice,
			"a parked order is not parked again":          leavesParked,
			"a missing order that was adopted is solved":  solvesMissing,
		} {
			t.Run(name, func(t *testing.T) { rule(newSite(t, server, url, sqlstore.Stock{})) })
		}
		t.Run("a stock that was corrected is deducted", func(t *testing.T) { solvesStock(t, server, url) })
	})
}

// metrics reads the metrics of a settler by name.
func (s *site) metrics(of *settle.Settler) func(name string) float64 {
	all := prometheus.NewRegistry()
	all.MustRegister(of)
	return func(name string) float64 {
		for _, f := range must(all.Gather())(s.T) {
			if f.GetName() == name {
				return f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		s.Fatalf("there is no metric %s", name)
		return 0
	}
}

// A running settler verifies by itself, and tells by its metrics what it has found.
func TestVerify_RunsByItself(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), sqlstore.Stock{})
	s.ledger.set("edited", 9)
	s.ledger.buy("edited", 0, 2)
	s.ledger.set("unproven", 9)
	s.ledger.reserve("unproven", "two", "bob", 2)
	s.ledger.finish("unproven", "confirm", "two")
	s.drain("edited")
	s.drain("unproven")
	s.exec("UPDATE sluice_order SET status = 'H' WHERE serial = 'edited-0'")
	s.edits("unproven", "two", "C|1|0|bob")
	running := must(settle.New(s.stream, s.store, settle.Options{
		Batch: 7, Ledger: s.ledger, Log: slog.New(slog.DiscardHandler), Auditor: s.store, Verify: 500 * time.Millisecond,
	}))(t)
	s.runs(running)
	value := s.metrics(running)
	s.until("one row is repaired, and one order differs", func() bool {
		return value("sluice_settler_verified_timestamp_seconds") > 0 && value("sluice_settler_repairs_total") == 1 &&
			value("sluice_settler_differing_orders") == 1 && value("sluice_settler_unverified_skus") == 0
	})
	s.equal("edited")
	s.oneConflict("unproven", "difference")
	s.edits("unproven", "two", "C|2|0|bob")
	s.until("the conflict is solved: the order was put right, and the SKU is at the same position", func() bool {
		return len(s.conflicts("unproven", "difference")) == 0
	})
}

// A settler that is stopped after it has told a ledger what it had lost leaves it frozen. The next one opens it,
// however seldom it verifies: until then the SKU sells nothing.
func TestVerify_FrozenLedgerDoesNotWaitForTheFirstPass(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), sqlstore.Stock{})
	const sku = "frozen"
	s.ledger.set(sku, 3)
	s.ledger.set("moved", 3)
	s.ledger.buy(sku, 0, 1)
	s.ledger.buy("moved", 0, 1)
	s.drain(sku)
	s.drain("moved")
	s.redis.Client.HDel(t.Context(), "sluice:shop:{"+sku+"}:r", sku+"-0") // a record that Redis alone has lost
	s.redis.Client.HSet(t.Context(), "sluice:shop:{"+sku+"}:s", "sold", 0)
	s.redis.Client.HDel(t.Context(), "sluice:shop:{"+sku+"}:u", "u0")
	for range 2 { // the first look alone repairs nothing
		_ = must(s.settler.VerifySKU(t.Context(), sku))(t)
	}
	s.drain(sku)
	if state := s.ledger.state(sku); state != "frozen" {
		t.Fatalf("%s is %s: want frozen", sku, state)
	}
	s.ledger.store.Settle = 0 // a ledger that was told opens at once
	s.exec("UPDATE sluice_order SET status = 'H' WHERE sku = 'moved'")
	next := must(settle.New(s.stream, s.store, settle.Options{
		Batch: 7, Ledger: s.ledger, Log: slog.New(slog.DiscardHandler), Auditor: s.store, Verify: time.Hour,
	}))(t)
	s.runs(next)
	s.until("the ledger is open", func() bool { return s.ledger.state(sku) == "on" })
	if n := next.Stats().Repairs; n != 0 {
		t.Errorf("%d SKUs were repaired: only frozen ones are verified at the start", n)
	}
}

// A server that takes over without the refund that came last stands where the settler has looked before. The settler
// looks again, since the server is another one: else the unit would stay sold for sixty looks.
func TestVerify_LooksAgainAfterAFailOver(t *testing.T) {
	t.Parallel()
	s := newSite(t, redistest.Start(t), "sqlite:"+filepath.Join(t.TempDir(), "settle.db"), sqlstore.Stock{})
	const sku = "took-over"
	s.ledger.set(sku, 3)
	s.ledger.buy(sku, 0, 1)
	s.drain(sku)
	s.ledger.store.Settle = 0 // a ledger that was told opens at once
	running := must(settle.New(s.stream, s.store, settle.Options{
		Batch: 7, Ledger: s.ledger, Log: slog.New(slog.DiscardHandler), Auditor: s.store, Verify: time.Second,
	}))(t)
	s.runs(running)
	value := s.metrics(running)
	s.until("the SKU was looked at", func() bool { return value("sluice_settler_verified_timestamp_seconds") > 0 })
	s.cancels(sku, sku+"-0")
	due := must(s.store.Due(t.Context(), 1))(t)
	s.refunds(due[0])
	if err := s.store.Done(t.Context(), due[0], "refunded"); err != nil { // and Redis has lost it
		t.Fatal(err)
	}
	s.redis.Client.HSet(t.Context(), "sluice:shop:{"+sku+"}:s", "run", "another")
	s.until("the ledger has the order as refunded", func() bool {
		return must(s.stream.Records(t.Context(), sku))(t)[sku+"-0"].Status == 'R'
	})
}
