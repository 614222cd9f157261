package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/settle"
	"sluice/settle/sqlstore"
)

func TestSettlement_KeepsItsContract(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, url string) {
		server := redistest.Start(t)
		for name, rule := range map[string]func(*site){
			"books orders of hostile text":           booksHostileText,
			"another settler's batch has no effect":  rejectsStaleBatch,
			"an older change has no effect":          keepsNewerOrder,
			"a poisoned entry is parked":             parksPoisonedEntry,
			"a trimmed stream is read whole":         rebuildsTrimmedStream,
			"a lost tail freezes and is adopted":     adoptsLostTail,
			"a raise that Redis has lost":            countsLostRaise,
			"ids that come again are noticed":        noticesReusedIDs,
			"a SKU sold again is another ledger":     beginsNewLedger,
			"the stream keeps the cursor's entry":    trimsSettledEntries,
			"an older Redis is not settled":          rejectsOlderRedis,
			"an order is given back once":            givesBackOnce,
			"an early give-back is kept":             keepsEarlyGiveback,
			"a give-back waits for the right Redis":  givesBackToRightRedis,
			"what is paid ends":                      endsWhatIsPaid,
			"the query of the guide counts one sale": countsPaidAsTheGuideDoes,
			"a lost confirmation is told":            confirmsAgain,
			"a released one stays released":          leavesReleased,
			"a lost refund is told":                  refundsAgain,
			"a lost give-back is told":               givesBackAgain,
			"a lost reservation is told":             holdsAgain,
			"a settled sale is archived":             archivesSettledSale,
			"an archive that was not seen":           archivesBehindTheSettler,
			"a SKU is rebuilt on demand":             rebuildsOnDemand,
			"a newer refund is followed":             followsNewRefund,
			"an adopted order is sold again":         keepsAdopted,
			"poison in a rebuild is parked":          parksPoisonInRebuild,
			"poison is parked alone":                 parksPoisonAlone,
			"the orders of the shop are compared":    comparesShop,
			"buyers of too many units are found":     findsBuyersOver,
			"a forgotten reservation is asked about": asksAboutForgotten,
			"a missing order is a conflict":          keepsMissing,
			"a missing order is given back":          givesBackMissing,
			"a ledger that was made again behind":    settlesRemadeBehind,
		} {
			t.Run(name, func(t *testing.T) { rule(newSite(t, server, url, sqlstore.Stock{})) })
		}
		t.Run("the shop's stock is deducted if enough is left", func(t *testing.T) { deductsShopStock(t, server, url) })
		t.Run("only what was deducted is returned", func(t *testing.T) { returnsWhatWasTaken(t, server, url) })
		t.Run("an adopted order is deducted once", func(t *testing.T) { deductsAdoptedOnce(t, server, url) })
		t.Run("the next sale is deducted", func(t *testing.T) { deductsOrdersOfTheNextSale(t, server, url) })
		t.Run("an archive that Redis has lost", func(t *testing.T) { archivesAgain(t, server, url) })
		t.Run("an order of an earlier ledger is given back", func(t *testing.T) { givesBackEarlier(t, server, url) })
		t.Run("a second conflict at a place is kept", func(t *testing.T) { keepsSecondConflict(t, server, url) })
		t.Run("the shop's table parks no order", func(t *testing.T) { booksWhatTheShopRejects(t, server, url) })
	})
}

func booksHostileText(s *site) {
	const sku = "hostile\x00\xff'\"`;--"
	s.ledger.set(sku, 100)
	users := []string{"", "a\x00b", "\xff\xfe", "x|y|z", strings.Repeat("u", 1024), `'; DROP TABLE sluice_order; --`}
	for i, user := range users {
		serial := fmt.Sprintf("s%d\x00\xff'", i)
		s.ledger.reserve(sku, serial, user, int64(i+1))
		switch i % 3 {
		case 0:
			s.ledger.finish(sku, "confirm", serial)
		case 1:
			s.ledger.finish(sku, "release", serial)
		}
		if i == 3 {
			s.ledger.finish(sku, "refund", serial)
		}
	}
	s.drain(sku)
	c := s.equal(sku)
	if c.Records != len(users) || c.Booked != 1 {
		s.Errorf("%d records, %d booked: want %d, 1", c.Records, c.Booked, len(users))
	}
	if left := s.left(sku); left != 99 {
		s.Errorf("%d units are left: want 99", left)
	}
	var found []string
	cursor, _, _ := s.store.Cursor(s.Context(), sku)
	_ = s.store.Orders(s.Context(), sku, cursor.Born,
		func(r settle.Record) { found = append(found, r.User) })
	if !slices.Equal(found, users) {
		s.Errorf("buyers %q: want %q", found, users)
	}
}

func rejectsStaleBatch(s *site) {
	const sku = "stale"
	s.ledger.set(sku, 10)
	s.ledger.buy(sku, 0, 3)
	entries := must(s.stream.Entries(s.Context(), sku, settle.Position{}, 100))(s.T)
	last := entries[len(entries)-1]
	b := settle.Batch{SKU: sku, To: settle.Cursor{Position: last.Position, Numbers: last.Numbers, Born: last.Epoch}}
	for _, e := range entries[:3] {
		b.Records = append(b.Records, e.Records...)
	}
	s.drain(sku)
	before, _, _ := s.store.Cursor(s.Context(), sku)
	_, err := s.store.Settle(s.Context(), b) // it believes that there is no cursor
	if !errors.Is(err, settle.ErrElsewhere) {
		s.Errorf("a batch for a cursor that is there: %v", err)
	}
	old := before
	old.Ver--
	b.From = &old
	if _, err := s.store.Settle(s.Context(), b); !errors.Is(err, settle.ErrElsewhere) {
		s.Errorf("a batch from an earlier position: %v", err)
	}
	if after, _, _ := s.store.Cursor(s.Context(), sku); after != before {
		s.Errorf("the cursor is %+v, and was %+v", after, before)
	}
	s.equal(sku)
}

func keepsNewerOrder(s *site) {
	const sku = "newer"
	s.ledger.set(sku, 10)
	s.ledger.buy(sku, 0, 1)
	s.drain(sku)
	cursor, _, _ := s.store.Cursor(s.Context(), sku)
	to := cursor
	to.Ver++
	o, err := s.store.Settle(s.Context(), settle.Batch{SKU: sku, From: &cursor, To: to, Records: []settle.Record{{
		Position: settle.Position{Epoch: cursor.Epoch, Ver: 2}, Serial: "newer-0", User: "u0", Quantity: 1, Status: 'H',
	}}})
	if err != nil || o.Units != 0 {
		s.Errorf("an older change of a confirmed order: %d units, %v", o.Units, err)
	}
	if left := s.left(sku); left != 9 {
		s.Errorf("%d units are left: want 9", left)
	}
}

func parksPoisonedEntry(s *site) {
	const sku = "poisoned"
	s.ledger.set(sku, 10)
	s.ledger.buy(sku, 0, 2)
	// The entry of the next change is replaced by one whose record cannot be read.
	entries := must(s.stream.Entries(s.Context(), sku, settle.Position{}, 100))(s.T)
	next := entries[len(entries)-1]
	next.Ver++
	s.redis.Client.Do(s.Context(), "XADD", "sluice:shop:{"+sku+"}:q", next.Position.String(), "op", "confirm", "total",
		"10",
		"held", "0", "sold", "3", "state", "on", "at", "1", "r:bad\x00", "Q|many|of\xff|nothing")
	next.Ver++
	s.redis.Client.Do(s.Context(), "XADD", "sluice:shop:{"+sku+"}:q", next.Position.String(), "op", "confirm", "total",
		"10",
		"held", "0", "sold", "4", "state", "on", "at", "1", "r:good", "C|1|0|u")
	next.Ver++ // no database keeps a serial of 300 bytes, but SQLite
	s.redis.Client.Do(s.Context(), "XADD", "sluice:shop:{"+sku+"}:q", next.Position.String(), "op", "confirm", "total",
		"10",
		"held", "0", "sold", "5", "state", "on", "at", "1", "r:"+strings.Repeat("s", 300), "C|1|0|u")
	next.Ver++
	s.redis.Client.Do(s.Context(), "XADD", "sluice:shop:{"+sku+"}:q", next.Position.String(), "op", "confirm", "total",
		"10",
		"held", "0", "sold", "6", "state", "on", "at", "1", "r:last", "C|1|0|u")
	s.drain(sku)
	cursor, _, _ := s.store.Cursor(s.Context(), sku)
	booked, want := int64(0), int64(4)
	_ = s.store.Orders(s.Context(), sku, cursor.Born, func(r settle.Record) { booked += r.Quantity })
	parked := s.conflicts(sku, "entry")
	if strings.HasPrefix(s.url, "sqlite") {
		want = 5
	} else if len(parked) != 2 {
		s.Errorf("%d conflicts: want 2: %q", len(parked), parked)
	}
	if cursor.Position != next.Position || booked != want || cursor.Sold != 6 {
		s.Errorf("cursor %v, %d booked, %d sold: want %v, %d, 6", cursor.Position, booked, cursor.Sold, next.Position, want)
	}
	if left := s.left(sku); left != 10-booked { // of what is booked, not of the ledger's sum
		s.Errorf("%d units are left: want %d", left, 10-booked)
	}
	waiting := must(s.store.Waiting(s.Context()))(s.T)
	if waiting.Conflicts["entry"] < 1 ||
		!slices.Contains(waiting.Differences, sqlstore.Difference{SKU: sku, Units: 6 - booked}) {
		s.Errorf("%+v waits: want an entry, and %d units", waiting, 6-booked)
	}
	if len(parked) == 0 || !strings.Contains(parked[0], `"r:bad\x00" "Q|many|of\xff|nothing"`) {
		s.Errorf("conflicts %q: want the bytes of the entry", parked)
	}
	if !strings.HasPrefix(s.url, "sqlite") { // it adds no constraint to a table
		s.retriesParkedEntry(sku, next.Position)
	}
}

// retriesParkedEntry settles an entry when the database takes it again, once; what cannot be read stays parked.
func (s *site) retriesParkedEntry(sku string, at settle.Position) {
	s.Helper()
	s.exec("ALTER TABLE sluice_order ADD CONSTRAINT no_such_time CHECK (at <> 4711)")
	at.Ver++
	s.redis.Client.Do(s.Context(), "XADD", "sluice:shop:{"+sku+"}:q", at.String(), "op", "confirm", "total", "10",
		"held", "0", "sold", "7", "state", "on", "at", "4711", "r:late", "C|1|0|u")
	s.drain(sku)
	s.exec("ALTER TABLE sluice_order DROP CONSTRAINT no_such_time")
	retried := 0
	for _, c := range must(s.store.Conflicts(s.Context(), 1000))(s.T) {
		if c.SKU != sku {
			continue
		}
		parked := must(s.store.Conflict(s.Context(), c.ID))(s.T)
		o, err := settle.Retry(s.Context(), s.store, parked)
		if !strings.Contains(c.Detail, `"r:late"`) {
			if err == nil {
				s.Errorf("conflict %d is solved, though nothing has changed: %s", c.ID, c.Detail)
			}
			continue
		}
		retried++
		if err != nil || o.Units != 1 || s.left(sku) != 5 {
			s.Errorf("retry: %d units, %v; %d are left: want 1, 5", o.Units, err, s.left(sku))
		}
		if _, err := settle.Retry(s.Context(), s.store, parked); err == nil || s.left(sku) != 5 {
			s.Errorf("the same conflict again: %v, %d units are left", err, s.left(sku))
		}
	}
	if retried != 1 {
		s.Errorf("%d entries were retried: want 1", retried)
	}
}

func deductsShopStock(t *testing.T, server *redistest.Server, url string) {
	s := newSite(t, server, url, sqlstore.Stock{Table: "shop_stock", SKUColumn: "sku_id", LeftColumn: "num", Check: true})
	exec := func(query string) {
		t.Helper()
		if err := s.store.Exec(context.Background(), query); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE shop_stock (sku_id bigint PRIMARY KEY, num bigint NOT NULL)")
	exec("INSERT INTO shop_stock VALUES (77001, 5), (77002, 5)")
	s.ledger.set("77001", 9)
	s.ledger.buy("77001", 0, 3)
	s.drain("77001")
	if left := s.left("77001"); left != 2 {
		t.Errorf("%d units are left: want 2", left)
	}
	s.equal("77001")
	s.ledger.buy("77001", 3, 3) // the shop has 2
	s.ledger.finish("77001", "refund", "77001-0")
	s.drain("77001")
	c, _, err := settle.Verify(t.Context(), s.stream, s.store, "77001")
	if err != nil || c.Booked != 5 || len(c.Differences) != 0 {
		t.Errorf("%+v, %v: want all orders booked", c, err)
	}
	if left := s.left("77001"); left < 0 || c.Deducted != 5-left {
		t.Errorf("%d units are left, %d deducted", left, c.Deducted)
	}
	exec("CREATE TABLE loose_stock (sku_id bigint PRIMARY KEY, num bigint)")
	exec("INSERT INTO loose_stock VALUES (77001, NULL)")
	loose := newSite(t, server, url, sqlstore.Stock{Table: "loose_stock", SKUColumn: "sku_id", LeftColumn: "num"})
	if left := loose.left("77001"); left != -1 {
		t.Errorf("of NULL %d units are left: want -1", left)
	}
}

// returnsWhatWasTaken has orders that were booked without stock: their refund returns none.
func returnsWhatWasTaken(t *testing.T, server *redistest.Server, url string) {
	s := newSite(t, server, url, sqlstore.Stock{Table: "short_stock", SKUColumn: "sku_id", LeftColumn: "num", Check: true})
	s.exec("CREATE TABLE short_stock (sku_id varchar(64) PRIMARY KEY, num bigint NOT NULL)")
	s.exec("INSERT INTO short_stock VALUES ('short', 2)")
	s.ledger.set("short", 9)
	s.ledger.buy("short", 0, 3) // one batch
	s.drain("short")
	s.ledger.buy("short", 3, 2)
	s.drain("short")
	if left := s.left("short"); left != 0 || len(s.conflicts("short", "stock")) != 1 {
		t.Errorf("%d units are left, conflicts %q: want 0, one", left, s.conflicts("short", "stock"))
	}
	for i, want := range []int64{0, 0, 0, 1, 2} {
		if serial := fmt.Sprintf("short-%d", i); i%2 == 0 {
			s.ledger.finish("short", "refund", serial)
			s.drain("short")
		} else {
			s.cancels("short", serial)
			s.givesBack(1)
		}
		if left := s.left("short"); left != want {
			t.Errorf("after %d refunds %d units are left: want %d", i+1, left, want)
		}
	}
	s.balances("short", 0, 2)
}

// keepsSecondConflict has refunds that the stock table does not take, all at one position.
func keepsSecondConflict(t *testing.T, server *redistest.Server, url string) {
	s := newSite(t, server, url, sqlstore.Stock{Table: "full_stock", SKUColumn: "sku_id", LeftColumn: "num", Check: true})
	s.exec("CREATE TABLE full_stock (sku_id varchar(64) PRIMARY KEY, num bigint NOT NULL CHECK (num <= 5))")
	s.exec("INSERT INTO full_stock VALUES ('full', 5)")
	s.ledger.set("full", 9)
	s.ledger.buy("full", 0, 3)
	s.drain("full")
	s.exec("UPDATE full_stock SET num = 5") // a delivery
	for i := range 3 {
		serial := fmt.Sprintf("full-%d", i)
		s.cancels("full", serial)
		s.givesBack(1)
		if found := strings.Join(s.conflicts("full", "stock"), ""); strings.Count(found, serial) != 1 {
			t.Errorf("conflicts %q: want one that names %s", found, serial)
		}
		s.exec("UPDATE sluice_conflict SET solved = CURRENT_TIMESTAMP WHERE sku = 'full'")
	}
	again := settle.Conflict{SKU: "full", Kind: "giveback", Detail: "the same"}
	for range 2 {
		if err := s.store.Report(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		if found := s.conflicts("full", "giveback"); !slices.Equal(found, []string{"the same"}) {
			t.Errorf("conflicts %q: want one", found)
		}
		s.exec("UPDATE sluice_conflict SET solved = CURRENT_TIMESTAMP WHERE sku = 'full'")
	}
}

// booksWhatTheShopRejects has a SKU that the shop's column does not take, and a constraint that is violated.
func booksWhatTheShopRejects(t *testing.T, server *redistest.Server, url string) {
	s := newSite(t, server, url, sqlstore.Stock{Table: "strict_stock", SKUColumn: "sku_id", LeftColumn: "num"})
	s.exec("CREATE TABLE strict_stock (sku_id bigint PRIMARY KEY, num bigint NOT NULL CHECK (num >= 0))")
	s.exec("INSERT INTO strict_stock VALUES (88001, 1)")
	for _, sku := range []string{"88001", "text"} {
		s.ledger.set(sku, 9)
		s.ledger.buy(sku, 0, 3)
		s.drain(sku)
		c, _, err := settle.Verify(t.Context(), s.stream, s.store, sku)
		if err != nil || c.Booked != 3 || len(c.Differences) != 0 {
			t.Errorf("%s: %+v, %v: want all orders booked", sku, c, err)
		}
		if len(s.conflicts(sku, "stock")) == 0 || len(s.conflicts(sku, "entry")) > 0 {
			t.Errorf("%s: conflicts %q, %q: want stock, and no entry", sku, s.conflicts(sku, "stock"), s.conflicts(sku, "entry"))
		}
	}
}
