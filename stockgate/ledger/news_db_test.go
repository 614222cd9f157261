package ledger

import (
	"context"
	"testing"

	"sluice/internal/redistest"
)

// PUBLISH knows no databases.
func TestNewsOfAnotherDatabaseAreNotHeard(t *testing.T) {
	server := redistest.Start(t)
	var desks [2]*Desk
	for db := range desks {
		o := optionsFor(server, 4)
		o.DB = db
		r := must[*Redis](t)(NewRedis(o))
		t.Cleanup(func() { r.Close() })
		must[Stock](t)(r.SetTotal(t.Context(), sku, 3, 0))
		desks[db] = opened(t, deskOptions(), r, nil)
		wants(t, "the first order", desks[db].buy("1", ""), Held)
	}
	until(t, "both listen", func() bool { return listeners(server) == 2 })
	for range 100 { // the other's versions run ahead
		for _, state := range []State{Paused, On} {
			must[Stock](t)(desks[1].store.SetState(t.Context(), sku, state))
		}
	}
	wants(t, "there", desks[1].buy("2", ""), Held)
	wants(t, "here", desks[0].buy("2", ""), Held)
	s, _, err := desks[0].store.Look(t.Context(), sku)
	check(t, err)
	want(t, "state", s.State, On)
}

// listeners is how many connections have a subscription.
func listeners(s *redistest.Server) (n int64) {
	for _, of := range s.Client.PubSubChannels(context.Background(), newsChannel+"*").Val() {
		n += s.Client.PubSubNumSub(context.Background(), of).Val()[of]
	}
	return n
}
