package redisstore

import (
	"fmt"
	"testing"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

func TestUnitsOf_AreThoseHeldAndSold(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		counts := func() []protocol.Owned {
			skus, users := []string{"1001", "none", "1002"}, []string{"ann", "eve", "bob"}
			return s.UnitsOf(t.Context(), skus, users)
		}
		for _, sku := range []string{"1001", "1002"} {
			ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), sku, 20, 0))
		}
		items := []protocol.Item{{Serial: "a", User: "ann", Quantity: 1}, {Serial: "b", User: "ann", Quantity: 2},
			{Serial: "c", User: "ann", Quantity: 4, Cart: "c1"}, {Serial: "d", User: "bob", Quantity: 8}}
		codes, done := make([]protocol.Code, 4), make([]protocol.Done, 4)
		_, err := s.Reserve(t.Context(), "1001", 0, 1, 9, items, codes)
		ledgertest.Check(t, err)
		finish := func(op protocol.Op, items ...protocol.Item) {
			t.Helper()
			_, err := s.Finish(t.Context(), "1001", 1, 9, op, items, done)
			ledgertest.Check(t, err)
		}
		wants := func(units int64) {
			t.Helper()
			owned := counts()
			ledgertest.Want(t, "units", fmt.Sprint(owned[0]), fmt.Sprintf("{[%d 0 8] on <nil>}", units))
			ledgertest.Want(t, "without a ledger", fmt.Sprint(owned[1]), "{[]  <nil>}")
			ledgertest.Want(t, "of another SKU", fmt.Sprint(owned[2]), "{[0 0 0] on <nil>}")
		}
		wants(7)
		finish(protocol.Confirm, items[0], items[2])
		wants(7)
		finish(protocol.Release, items[1])
		wants(5)
		finish(protocol.Refund, items[2])
		wants(1)
		ledgertest.Must[protocol.Stock](t)(s.SetState(t.Context(), "1002", protocol.Frozen))
		ledgertest.Want(t, "frozen", counts()[2].State, protocol.Frozen)
	})
}

// The units of the tail are not counted, and the caller is told so.
func TestUnitsOf_LedgerThatMayHaveLostSomethingIsUnknown(t *testing.T) {
	p := newPair(t)
	x := exchangeTo(t, p.master)
	a, b := p.through(x), p.through(x)
	ledgertest.Must[protocol.Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, a, "a")
	takes(t, b, "b")
	p.cut()
	takes(t, a, "tail")
	x.turn(p.replica.Addr)
	ledgertest.Until(t, "it is asked", func() bool {
		owned := b.UnitsOf(t.Context(), []string{"1001"}, []string{"tail"})[0]
		if owned.Err == nil && owned.State == protocol.On {
			t.Fatalf("it tells %+v", owned)
		}
		return owned.Err == nil
	})
}
