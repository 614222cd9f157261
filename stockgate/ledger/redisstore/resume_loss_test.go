package redisstore

import (
	"testing"

	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// Who resumes a sale that was paused vouches for nothing: what is lost meanwhile is not known to anybody yet.
func TestResumeLoss_ResumingDoesNotOpenWhatThisVeryCallFindsLost(t *testing.T) {
	server, a := durable(t)
	takes(t, a, "a")
	kept := snapshotOf(t, server, "1001")
	takes(t, a, "lost")
	kept.restore(t, server)
	s := ledgertest.Must[protocol.Stock](t)(a.SetState(t.Context(), "1001", protocol.On))
	ledgertest.Want(t, "state that is told", s.State, protocol.Frozen)
	frozen(t, a, failover.LostVersion)
	code, _ := takes(t, a, "after")
	ledgertest.Want(t, "after", code, protocol.NotOnSale)
	ledgertest.Must[protocol.Stock](t)(a.SetState(t.Context(), "1001", protocol.On)) // an operator has looked
	code, _ = takes(t, a, "reconciled")
	ledgertest.Want(t, "reconciled", code, protocol.Held)
}

func TestResumeLoss_ResumingDoesNotVouchForAnotherServer(t *testing.T) {
	server, a := durable(t)
	b := single(t, server)
	takes(t, a, "a")
	takes(t, b, "b")
	ledgertest.Must[protocol.Stock](t)(a.SetState(t.Context(), "1001", protocol.Paused))
	kept := snapshotOf(t, server, "1001")
	ledgertest.Finish(t, b, protocol.Adopt, "lost")
	kept.restore(t, server)
	restart(t, server)
	ledgertest.Until(t, "it is resumed", func() bool {
		_, err := a.SetState(t.Context(), "1001", protocol.On)
		return err == nil
	})
	_, h := takes(t, a, "a2")
	ledgertest.Want(t, "before the other has looked", h.State, protocol.Verifying)
	ledgertest.Must[[]protocol.Record](t)(sweepSoon(t, b))
	ledgertest.Want(t, "when it has", ledgertest.StockOf(t, b).State, protocol.Frozen)
}
