package sqlstore_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

// gate is an instance of a gateway: it has a journal, and tells a ledger what it knows. stateDir may be "".
func (s *site) gate(stateDir string) *testLedger {
	s.Helper()
	store := must(ledger.NewStore(ledger.StoreOptions{Name: "shop",
		Options: storetest.Redis(s.redis.Addr), Events: 1_000_000, Acknowledged: true, StateDir: stateDir,
	}))(s.T)
	s.Cleanup(func() { store.Close() })
	store.Settle = 0
	s.ledger.store.Settle = 0
	return newLedger(s.T, s.redis, store)
}

// calls has a gate sweep once, as it does each second, and tell what it has to tell.
func (s *site) calls(g *testLedger, sku string, now time.Time) {
	s.Helper()
	at := now.UnixMilli()
	if _, err := g.store.Sweep(s.Context(), sku, at, at+1000, 1); err != nil {
		s.Logf("sweep: %v", err) // the ledger is gone
	}
	if len(g.store.Pending()) > 0 {
		if _, err := g.store.Recover(s.Context(), sku, at, now.Add(ledger.KeepReleased).UnixMilli()); err != nil {
			s.Logf("recover: %v", err)
		}
	}
}

// heals has gates and settler work until the SKU is open and both books are equal.
func (s *site) heals(sku string, now time.Time, gates ...*testLedger) {
	s.Helper()
	s.ledger.store.Settle = 0
	for _, g := range gates { // that the ledger is frozen, one of them finds
		s.calls(g, sku, now)
	}
	var c settle.Comparison
	defer func() {
		if s.Failed() {
			s.Logf("the SKU is %s: %+v", s.ledger.state(sku), c)
		}
	}()
	s.until(sku+" is open, and both books are equal", func() bool {
		for _, g := range gates {
			s.calls(g, sku, now)
		}
		s.drain(sku)
		var ok bool
		var err error
		c, ok, err = settle.Verify(s.Context(), s.stream, s.store, sku)
		return err == nil && ok && c.Equal() && s.ledger.state(sku) == "on"
	})
}

// isGivenBack wants an order to be refunded in the database, and refunded or forgotten in Redis.
func (s *site) isGivenBack(sku, serial string) {
	s.Helper()
	if r, ok := must(s.stream.Records(s.Context(), sku))(s.T)[serial]; ok && r.Status != 'R' {
		s.Errorf("Redis has the order %s as %c: want R, or none", serial, r.Status)
	}
	c, _, _ := s.store.Cursor(s.Context(), sku)
	_ = s.store.Orders(s.Context(), sku, c.Born, func(r settle.Record) {
		if r.Serial == serial && r.Status != 'R' {
			s.Errorf("the database has the order %s as %c: want R", serial, r.Status)
		}
	})
	if l := must(s.stream.Ledgers(s.Context(), []string{sku}))(s.T)[0]; l.Held != 0 {
		s.Errorf("%d units are held: want none", l.Held)
	}
}

// givesBackByTable has the shop cancel an order, and the settler give it back.
func (s *site) givesBackByTable(sku, serial string) {
	s.Helper()
	s.cancels(sku, serial)
	s.givesBack(1)
	s.drain(sku)
}

func givesBackInTheTail(s *site) {
	const sku = "tail-back"
	g := s.gate("")
	g.set(sku, 7)
	g.buy(sku, 9, 1)
	s.drain(sku)
	forget := s.dump(sku)
	g.buy(sku, 0, 1)
	s.drain(sku)
	s.givesBackByTable(sku, sku+"-0")
	forget()
	s.heals(sku, time.Now(), g)
	s.isGivenBack(sku, sku+"-0")
	s.balances(sku, 1, 6)
	s.verifies(sku)
	s.noConflict(sku, "lost")
}

func sellsAgainInTheTail(s *site) {
	const sku = "tail-again"
	g, other := s.gate(""), s.gate("")
	g.set(sku, 1)
	s.calls(other, sku, time.Now())
	s.drain(sku)
	forget := s.dump(sku)
	g.buy(sku, 0, 1)
	s.drain(sku)
	s.givesBackByTable(sku, sku+"-0")
	other.buy(sku, 1, 1)
	forget()
	s.heals(sku, time.Now(), other, g)
	s.isGivenBack(sku, sku+"-0")
	s.is(sku, sku+"-1", 'C')
	s.soldOut(sku)
	s.balances(sku, 1, 0)
}

// recreates makes a ledger again whose keys are all gone, with the orders that the shop or the database has.
func (s *site) recreates(sku string, total int64, fromShop []settle.Record, gates ...*testLedger) {
	s.Helper()
	for _, g := range gates {
		s.calls(g, sku, time.Now())
	}
	_ = must(gates[0].store.Recreate(s.Context(), sku, total, 0, false))(s.T)
	for range 3 {
		for _, g := range gates {
			s.calls(g, sku, time.Now())
		}
	}
	adopt := fromShop
	if adopt == nil {
		c, _, _ := s.store.Cursor(s.Context(), sku)
		known := must(s.stream.Records(s.Context(), sku))(s.T)
		_ = s.store.Orders(s.Context(), sku, c.Born, func(r settle.Record) {
			if _, ok := known[r.Serial]; !ok && !r.Status.Final() {
				adopt = append(adopt, r)
			}
		})
	}
	if err := s.ledger.Adopt(s.Context(), sku, adopt); err != nil {
		s.Fatal(err)
	}
	gates[0].open(sku)
	s.heals(sku, time.Now(), gates...)
}

// vanishes sells three orders and gives the first one back, and has Redis lose everything.
func (s *site) vanishes(sku string, g *testLedger) {
	s.Helper()
	g.set(sku, 3)
	g.buy(sku, 0, 3)
	s.drain(sku)
	s.givesBackByTable(sku, sku+"-0")
	g.buy(sku, 3, 1) // the same unit
	s.drain(sku)
	s.redis.Client.Del(s.Context(), s.keys(sku)...)
	s.ledger.forget()
}

func (s *site) isAsBefore(sku string) {
	s.Helper()
	s.isGivenBack(sku, sku+"-0")
	s.is(sku, sku+"-3", 'C')
	s.soldOut(sku)
	s.balances(sku, 3, 0)
	s.verifies(sku)
	s.noConflict(sku, "lost")
}

func recreatesFromSettlement(s *site) {
	const sku = "again-settled"
	g := s.gate("")
	s.vanishes(sku, g)
	s.recreates(sku, 3, nil, g)
	s.isAsBefore(sku)
}

func recreatesFromFile(s *site) {
	const sku = "again-file"
	g := s.gate("")
	s.vanishes(sku, g)
	s.recreates(sku, 3, []settle.Record{{Serial: sku + "-1", User: "u1", Quantity: 1},
		{Serial: sku + "-2", User: "u2", Quantity: 1}, {Serial: sku + "-3", User: "u3", Quantity: 1}}, g)
	s.isAsBefore(sku)
}

func recreatesWithStateDir(s *site) {
	const sku = "again-restarted"
	dir, returned := s.TempDir(), filepath.Join(s.TempDir(), "returned")
	g := s.gate(dir)
	s.vanishes(sku, g)
	if err := os.CopyFS(returned, os.DirFS(dir)); err != nil { // as a kill leaves it
		s.Fatal(err)
	}
	g = s.gate(returned)
	s.recreates(sku, 3, nil, g)
	s.isAsBefore(sku)
}

// marks has each instance have called last at a time, by what the ledger says.
func (s *site) marks(sku string, at time.Time) {
	s.Helper()
	key := "sluice:shop:{" + sku + "}:s"
	for field, mark := range s.redis.Client.HGetAll(s.Context(), key).Val() {
		if words := strings.Split(mark, "|"); strings.HasPrefix(field, "m:") || strings.HasPrefix(field, "rc:") {
			words[1] = strconv.FormatInt(at.UnixMilli(), 10)
			s.redis.Client.HSet(s.Context(), key, field, strings.Join(words, "|"))
		}
	}
}

// refundedADayAgo has an order that was refunded a day before the SKU freezes.
func refundedADayAgo(s *site) {
	const sku = "day-ago"
	g := s.gate("")
	g.set(sku, 3)
	g.buy(sku, 0, 1)
	s.drain(sku)
	s.givesBackByTable(sku, sku+"-0")
	later := time.Now().Add(25 * time.Hour)
	s.ledger.store.Settle = 0
	s.calls(g, sku, later)
	s.exec("UPDATE sluice_order SET at = at - 90000000 WHERE sku = 'day-ago'") // it is 25 h later here, too
	forget := s.dump(sku)
	g.buy(sku, 1, 1)
	s.drain(sku)
	forget()
	s.until(sku+" is open, and both books are equal", func() bool {
		s.marks(sku, later)
		s.calls(g, sku, later)
		s.drain(sku)
		c, ok, err := settle.Verify(s.Context(), s.stream, s.store, sku)
		return err == nil && ok && c.Equal() && s.ledger.state(sku) == "on"
	})
	s.isGivenBack(sku, sku+"-0")
	s.is(sku, sku+"-1", 'C')
	s.balances(sku, 1, 2)
}

// What was refunded stays so, whatever Redis loses: afterwards ledger, database and shop are equal.
func TestFinalStates_NoRecoveryTurnsAGiveBackIntoASale(t *testing.T) {
	t.Parallel()
	everyDatabase(t, func(t *testing.T, url string) {
		server := redistest.Start(t)
		for name, rule := range map[string]func(*site){
			"given back in the lost tail":          givesBackInTheTail,
			"given back there, and sold again":     sellsAgainInTheTail,
			"made again from the database":         recreatesFromSettlement,
			"made again from a file":               recreatesFromFile,
			"made again with a restarted instance": recreatesWithStateDir,
			"refunded a day ago":                   refundedADayAgo,
		} {
			t.Run(name, func(t *testing.T) { rule(newSite(t, server, url, sqlstore.Stock{})) })
		}
	})
}
