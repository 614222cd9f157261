package ledger

import (
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// A settler counts for seconds what is paid. What became of the SKU meanwhile stands.
func TestSetPaid_EndsOnlyWhatIsOnSaleAndSoldWhole(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t), texts())
	ends := func() bool { return testkit.Must[bool](t)(s.SetPaid(t.Context(), "1001", Ended)) }
	testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 1, 1))
	testkit.Want(t, "a free unit ends", ends(), false)
	testkit.Want(t, "an order", takeUnit(t, s, "a", "ann"), Held)
	testkit.Want(t, "a held unit ends", ends(), false)
	testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 1, 1))
	done := make([]Done, 1)
	testkit.Must[StockVersion](t)(s.Finish(t.Context(), "1001", 0, 1<<49, Confirm,
		[]Item{{Serial: "a", User: "ann", Quantity: 1}}, done))
	for _, state := range []State{Paused, Frozen} {
		testkit.Must[Stock](t)(s.SetState(t.Context(), "1001", state))
		testkit.Want(t, "it ends while it is "+string(state), ends(), false)
		isState(t, s, "it stays", state)
	}
	testkit.Must[Stock](t)(s.SetState(t.Context(), "1001", On))
	testkit.Want(t, "sold and paid, it ends", ends(), true)
	isState(t, s, "it has ended", Ended)
}

// endPaid sells the only unit of a SKU, and has a settler end it.
func endPaid(t *testing.T, s *Store) {
	t.Helper()
	testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 1, 1))
	testkit.Want(t, "an order", takeUnit(t, s, "a", "ann"), Held)
	testkit.Want(t, "it is confirmed", finishOne(t, s, Confirm, "a"), Changed)
	testkit.Want(t, "it ends", testkit.Must[bool](t)(s.SetPaid(t.Context(), "1001", Ended)), true)
	testkit.Want(t, "why", stockIn(t, s).Why, "paid")
}

// A SKU that settlers have ended stays theirs to open, whatever interrupts that it has ended, until a state is said.
func TestSetPaid_OutlastsAFreezeAndAnOverride(t *testing.T) {
	for what, c := range map[string]struct {
		between func(t *testing.T, s *Store, server *redistest.Server)
		opens   bool
	}{
		"nothing": {func(*testing.T, *Store, *redistest.Server) {}, true},
		"a loss": {func(t *testing.T, s *Store, server *redistest.Server) {
			kept := snapshotOf(t, server, "1001")
			testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 1, 2))
			kept.restore(t, server)
			testkit.Want(t, "after the loss", takeUnit(t, s, "b", "bob"), NotOnSale)
			frozen(t, s, lostVersion)
			testkit.Check(t, server.Client.HSet(t.Context(), hashOf1001, "since", 1).Err())
			testkit.Eventually(t, "it is open again", func() bool {
				return testkit.Must[Result](t)(s.Recover(t.Context(), "1001", 1, 1<<49)).Over
			})
		}, true},
		"an override": {func(t *testing.T, s *Store, _ *redistest.Server) {
			overruled(t, s, 7)
			reinstated(t, s, 7)
		}, true},
		"more units": {func(t *testing.T, s *Store, _ *redistest.Server) {
			testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 2, 1))
		}, true},
		"an operator": {func(t *testing.T, s *Store, _ *redistest.Server) {
			testkit.Must[Stock](t)(s.SetState(t.Context(), "1001", Ended))
		}, false},
		"an archive, and stock for the next sale": {func(t *testing.T, s *Store, _ *redistest.Server) {
			h := stockIn(t, s)
			testkit.Check(t, s.Archive(t.Context(), "1001", h.Epoch, h.Ver))
			testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 2, 1))
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			server := redistest.Start(t)
			s := connect(t, server, texts())
			endPaid(t, s)
			c.between(t, s, server)
			isState(t, s, "then", Ended)
			testkit.Want(t, "it opens", testkit.Must[bool](t)(s.SetPaid(t.Context(), "1001", On)), c.opens)
			want := map[bool]State{true: On, false: Ended}[c.opens]
			isState(t, s, "in the end", want)
			testkit.Want(t, "why in the end", stockIn(t, s).Why, "")
		})
	}
}

// What an operator overrides stands until it ends, also where it says what the settlers have said: free units open
// the SKU afterwards.
func TestSetPaid_ChangesNothingThatIsOverridden(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t), texts())
	opens := func() bool { return testkit.Must[bool](t)(s.SetPaid(t.Context(), "1001", On)) }
	endPaid(t, s)
	_, before, inForce, err := s.Overrule(t.Context(), "1001", Ended, 7)
	testkit.Check(t, err)
	testkit.Want(t, "before", before, Ended)
	testkit.Want(t, "in force", inForce, true)
	testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 2, 1))
	testkit.Want(t, "it opens while it is overridden", opens(), false)
	isState(t, s, "overridden", Ended)
	reinstated(t, s, 7)
	testkit.Want(t, "it opens afterwards", opens(), true)
	isState(t, s, "in the end", On)

	testkit.Want(t, "an order", takeUnit(t, s, "b", "bob"), Held)
	testkit.Want(t, "it is confirmed", finishOne(t, s, Confirm, "b"), Changed)
	ends := func() bool { return testkit.Must[bool](t)(s.SetPaid(t.Context(), "1001", Ended)) }
	_, _, _, err = s.Overrule(t.Context(), "1001", Ended, 8)
	testkit.Check(t, err)
	testkit.Want(t, "it ends for the settlers", ends(), false)
	reinstated(t, s, 8)
	isState(t, s, "after the second override", On)
	testkit.Want(t, "it ends", ends(), true)
}
