package ledger

import (
	"context"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// PUBLISH knows no databases.
func TestNewsDB_NewsOfAnotherDatabaseAreNotHeard(t *testing.T) {
	server := redistest.Start(t)
	var reservers [2]*Reserver
	for db := range reservers {
		o := optionsFor(server, 4)
		o.DB = db
		r := testkit.Must[*Store](t)(NewStore(o))
		t.Cleanup(func() { r.Close() })
		testkit.Must[Stock](t)(r.SetTotal(t.Context(), testSKU, 3, 0))
		reservers[db] = opened(t, testOptions(), r, nil)
		wants(t, "the first order", reservers[db].buy("1", ""), Held)
	}
	testkit.Eventually(t, "both listen", func() bool { return listeners(server) == 2 })
	for range 100 { // the other's versions run ahead
		for _, state := range []State{Paused, On} {
			testkit.Must[Stock](t)(reservers[1].store.(*Store).SetState(t.Context(), testSKU, state))
		}
	}
	testkit.Eventually(t, "an order there is held", func() bool { return reservers[1].buy("2", "").Code == Held })
	wants(t, "here", reservers[0].buy("2", ""), Held)
	s, _, err := reservers[0].store.ReadStock(t.Context(), testSKU)
	testkit.Check(t, err)
	testkit.Want(t, "state", s.State, On)
}

func listeners(s *redistest.Server) (n int64) {
	for _, of := range s.Client.PubSubChannels(context.Background(), "sluice:shop:news*").Val() {
		n += s.Client.PubSubNumSub(context.Background(), of).Val()[of]
	}
	return n
}
