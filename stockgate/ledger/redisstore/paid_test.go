package redisstore

import (
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// A settler counts for seconds what is paid. What became of the SKU meanwhile stands.
func TestSetPaid_EndsOnlyWhatIsOnSaleAndSoldWhole(t *testing.T) {
	s := connect(t, redistest.Start(t), texts())
	ends := func() bool { return ledgertest.Must[bool](t)(s.SetPaid(t.Context(), "1001", protocol.Ended)) }
	ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 1, 1))
	ledgertest.Want(t, "a free unit ends", ends(), false)
	ledgertest.Want(t, "an order", ledgertest.Take(t, s, "a", "ann"), protocol.Held)
	ledgertest.Want(t, "a held unit ends", ends(), false)
	ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 1, 1))
	done := make([]protocol.Done, 1)
	ledgertest.Must[protocol.StockVersion](t)(s.Finish(t.Context(), "1001", 0, 1<<49, protocol.Confirm,
		[]protocol.Item{{Serial: "a", User: "ann", Quantity: 1}}, done))
	for _, state := range []protocol.State{protocol.Paused, protocol.Frozen} {
		ledgertest.Must[protocol.Stock](t)(s.SetState(t.Context(), "1001", state))
		ledgertest.Want(t, "it ends while it is "+string(state), ends(), false)
		isState(t, s, "it stays", state)
	}
	ledgertest.Must[protocol.Stock](t)(s.SetState(t.Context(), "1001", protocol.On))
	ledgertest.Want(t, "sold and paid, it ends", ends(), true)
	isState(t, s, "it has ended", protocol.Ended)
}

// endPaid sells the only unit of a SKU, and has a settler end it.
func endPaid(t *testing.T, s *Store) {
	t.Helper()
	ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 1, 1))
	ledgertest.Want(t, "an order", ledgertest.Take(t, s, "a", "ann"), protocol.Held)
	ledgertest.Want(t, "it is confirmed", ledgertest.Finish(t, s, protocol.Confirm, "a"), protocol.Changed)
	ledgertest.Want(t, "it ends", ledgertest.Must[bool](t)(s.SetPaid(t.Context(), "1001", protocol.Ended)), true)
	ledgertest.Want(t, "why", ledgertest.StockOf(t, s).Why, "paid")
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
			ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 1, 2))
			kept.restore(t, server)
			ledgertest.Want(t, "after the loss", ledgertest.Take(t, s, "b", "bob"), protocol.NotOnSale)
			frozen(t, s, failover.LostVersion)
			ledgertest.Check(t, server.Client.HSet(t.Context(), hashOf1001, "since", 1).Err())
			ledgertest.Until(t, "it is open again", func() bool {
				return ledgertest.Must[failover.Result](t)(s.Recover(t.Context(), "1001", 1, 1<<49)).Over
			})
		}, true},
		"an override": {func(t *testing.T, s *Store, _ *redistest.Server) {
			overruled(t, s, 7)
			reinstated(t, s, 7)
		}, true},
		"more units": {func(t *testing.T, s *Store, _ *redistest.Server) {
			ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 2, 1))
		}, true},
		"an operator": {func(t *testing.T, s *Store, _ *redistest.Server) {
			ledgertest.Must[protocol.Stock](t)(s.SetState(t.Context(), "1001", protocol.Ended))
		}, false},
		"an archive, and stock for the next sale": {func(t *testing.T, s *Store, _ *redistest.Server) {
			h := ledgertest.StockOf(t, s)
			ledgertest.Check(t, s.Archive(t.Context(), "1001", h.Epoch, h.Ver))
			ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 2, 1))
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			server := redistest.Start(t)
			s := connect(t, server, texts())
			endPaid(t, s)
			c.between(t, s, server)
			isState(t, s, "then", protocol.Ended)
			ledgertest.Want(t, "it opens", ledgertest.Must[bool](t)(s.SetPaid(t.Context(), "1001", protocol.On)), c.opens)
			want := map[bool]protocol.State{true: protocol.On, false: protocol.Ended}[c.opens]
			isState(t, s, "in the end", want)
			ledgertest.Want(t, "why in the end", ledgertest.StockOf(t, s).Why, "")
		})
	}
}

// What an operator overrides stands until it ends, also where it says what the settlers have said: free units open
// the SKU afterwards.
func TestSetPaid_ChangesNothingThatIsOverridden(t *testing.T) {
	s := connect(t, redistest.Start(t), texts())
	opens := func() bool { return ledgertest.Must[bool](t)(s.SetPaid(t.Context(), "1001", protocol.On)) }
	endPaid(t, s)
	_, before, inForce, err := s.Overrule(t.Context(), "1001", protocol.Ended, 7)
	ledgertest.Check(t, err)
	ledgertest.Want(t, "before", before, protocol.Ended)
	ledgertest.Want(t, "in force", inForce, true)
	ledgertest.Must[protocol.Stock](t)(s.SetTotal(t.Context(), "1001", 2, 1))
	ledgertest.Want(t, "it opens while it is overridden", opens(), false)
	isState(t, s, "overridden", protocol.Ended)
	reinstated(t, s, 7)
	ledgertest.Want(t, "it opens afterwards", opens(), true)
	isState(t, s, "in the end", protocol.On)

	ledgertest.Want(t, "an order", ledgertest.Take(t, s, "b", "bob"), protocol.Held)
	ledgertest.Want(t, "it is confirmed", ledgertest.Finish(t, s, protocol.Confirm, "b"), protocol.Changed)
	ends := func() bool { return ledgertest.Must[bool](t)(s.SetPaid(t.Context(), "1001", protocol.Ended)) }
	_, _, _, err = s.Overrule(t.Context(), "1001", protocol.Ended, 8)
	ledgertest.Check(t, err)
	ledgertest.Want(t, "it ends for the settlers", ends(), false)
	reinstated(t, s, 8)
	isState(t, s, "after the second override", protocol.On)
	ledgertest.Want(t, "it ends", ends(), true)
}
