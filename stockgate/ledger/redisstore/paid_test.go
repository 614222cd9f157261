package redisstore

import (
	"testing"

	"sluice/internal/redistest"
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
