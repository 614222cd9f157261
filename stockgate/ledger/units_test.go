package ledger

import (
	"fmt"
	"testing"

	"sluice/internal/testkit"
)

func TestUnitsOf_AreThoseHeldAndSold(t *testing.T) {
	t.Parallel()
	withUnits(t, func(t *testing.T, s *Store) {
		counts := func() []Owned {
			skus, users := []string{"1001", "none", "1002"}, []string{"ann", "eve", "bob"}
			return s.UnitsOf(t.Context(), skus, users)
		}
		for _, sku := range []string{"1001", "1002"} {
			testkit.Must[Stock](t)(s.SetTotal(t.Context(), sku, 20, 0))
		}
		items := []Item{{Serial: "a", User: "ann", Quantity: 1}, {Serial: "b", User: "ann", Quantity: 2},
			{Serial: "c", User: "ann", Quantity: 4, Cart: "c1"}, {Serial: "d", User: "bob", Quantity: 8}}
		codes, done := make([]Code, 4), make([]Done, 4)
		_, err := s.Reserve(t.Context(), "1001", 0, 1, 9, items, codes)
		testkit.Check(t, err)
		finish := func(op Op, items ...Item) {
			t.Helper()
			_, err := s.Finish(t.Context(), "1001", 1, 9, op, items, done)
			testkit.Check(t, err)
		}
		wants := func(units int64) {
			t.Helper()
			owned := counts()
			testkit.Want(t, "units", fmt.Sprint(owned[0]), fmt.Sprintf("{[%d 0 8] on <nil>}", units))
			testkit.Want(t, "without a ledger", fmt.Sprint(owned[1]), "{[]  <nil>}")
			testkit.Want(t, "of another SKU", fmt.Sprint(owned[2]), "{[0 0 0] on <nil>}")
		}
		wants(7)
		finish(Confirm, items[0], items[2])
		wants(7)
		finish(Release, items[1])
		wants(5)
		finish(Refund, items[2])
		wants(1)
		testkit.Must[Stock](t)(s.SetState(t.Context(), "1002", Frozen))
		testkit.Want(t, "frozen", counts()[2].State, Frozen)
	})
}

// The units of the tail are not counted, and the caller is told so.
func TestUnitsOf_LedgerThatMayHaveLostSomethingIsUnknown(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	x := exchangeTo(t, p.master)
	a, b := p.through(x), p.through(x)
	testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
	takes(t, a, "a")
	takes(t, b, "b")
	p.cut()
	takes(t, a, "tail")
	x.turn(p.replica.Addr)
	testkit.Eventually(t, "it is asked", func() bool {
		owned := b.UnitsOf(t.Context(), []string{"1001"}, []string{"tail"})[0]
		if owned.Err == nil && owned.State == On {
			t.Fatalf("it tells %+v", owned)
		}
		return owned.Err == nil
	})
}
