package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// watched calls seen after it has handed orders out.
type watched struct {
	*ledger.Store
	seen func(ledger.HandedOut)
}

func (w *watched) HandOut(ctx context.Context, sku string, c ledger.HandOutCall) (ledger.HandedOut, error) {
	t, err := w.Store.HandOut(ctx, sku, c)
	w.seen(t)
	return t, err
}

// Another instance pauses all of them between the grant of a place and a second attempt, which so loses its place. The
// place is not used for another order: the upstream would have more orders at once than the limit.
func TestDeliverer_LostPlaceIsNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := &bench{knows: ledger.OrderNotFound}, &watched{}
		b.reply = func(n int, _ *upstream.Request) (int, upstream.Outcome) {
			if n == 1 {
				time.Sleep(1500 * time.Millisecond) // after its deadline: it is sent again
				return 409, upstream.Answered
			}
			time.Sleep(500 * time.Millisecond)
			return 201, upstream.Answered
		}
		slots := func(c ledger.SlotCall) int {
			c.Limit, c.For = 1, time.Minute.Milliseconds()
			n, err := store.Slots(t.Context(), c)
			if err != nil {
				t.Error(err)
			}
			return n
		}
		paused := false
		store.seen = func(h ledger.HandedOut) {
			if len(h.Orders) == 0 || h.Orders[0].Attempt < 2 || paused {
				return
			}
			paused = true
			b.order(t, "2", "c")
			slots(ledger.SlotCall{Pause: 20})
		}
		open(t, b, func(o *Options) {
			o.MaxInFlight, store.Store = 1, o.Store.(*ledger.Store)
			o.Store = store
		})
		b.order(t, "1", "a")
		for range 600 {
			time.Sleep(5 * time.Millisecond)
			if n := slots(ledger.SlotCall{Want: []string{"other"}}); n > 0 {
				synctest.Wait() // an order that gave its place back in this instant has ended now
				if b.slots.inFlight.Load() > 0 {
					t.Fatal("another instance got the only place while an order was in the upstream")
				}
				slots(ledger.SlotCall{Free: []string{"other"}})
			}
		}
		testkit.Eventually(t, "both are made", func() bool {
			return b.state(t, "1", "a").Status == ledger.StatusSold && b.state(t, "2", "c").Status == ledger.StatusSold
		})
		if !paused {
			t.Error("there was no second attempt")
		}
	})
}
