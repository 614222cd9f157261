package redisstore

import (
	"context"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// PUBLISH knows no databases.
func TestNewsDB_NewsOfAnotherDatabaseAreNotHeard(t *testing.T) {
	server := redistest.Start(t)
	var desks [2]*seller
	for db := range desks {
		o := optionsFor(server, 4)
		o.DB = db
		r := ledgertest.Must[*Store](t)(New(o))
		t.Cleanup(func() { r.Close() })
		ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), ledgertest.SKU, 3, 0))
		desks[db] = opened(t, deskOptions(), r, nil)
		wants(t, "the first order", desks[db].buy("1", ""), protocol.Held)
	}
	ledgertest.Until(t, "both listen", func() bool { return listeners(server) == 2 })
	for range 100 { // the other's versions run ahead
		for _, state := range []protocol.State{protocol.Paused, protocol.On} {
			ledgertest.Must[protocol.Stock](t)(desks[1].store.SetState(t.Context(), ledgertest.SKU, state))
		}
	}
	ledgertest.Until(t, "an order there is held", func() bool { return desks[1].buy("2", "").Code == protocol.Held })
	wants(t, "here", desks[0].buy("2", ""), protocol.Held)
	s, _, err := desks[0].store.ReadStock(t.Context(), ledgertest.SKU)
	ledgertest.Check(t, err)
	ledgertest.Want(t, "state", s.State, protocol.

		// listeners is how many connections have a subscription.
		On)
}

func listeners(s *redistest.Server) (n int64) {
	for _, of := range s.Client.PubSubChannels(context.Background(), "sluice:shop:news*").Val() {
		n += s.Client.PubSubNumSub(context.Background(), of).Val()[of]
	}
	return n
}
