package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/stockgate/ledger/protocol"
	"sluice/upstream"
)

// miserly is a store that grants no place while it is closed.
type miserly struct {
	protocol.Queue
	closed atomic.Bool
}

func (m *miserly) Slots(ctx context.Context, c protocol.SlotCall) (int, error) {
	if m.closed.Load() {
		return 0, nil
	}
	return m.Queue.Slots(ctx, c)
}

func TestDeliverer_SaysThatOrdersWaitWhileNoPlaceIsGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := &bench{}, &miserly{}
		store.closed.Store(true)
		b.reply = func(int, *upstream.Request) (int, upstream.Outcome) { return 201, upstream.Answered }
		open(t, b, func(o *Options) { store.Queue, o.Store = o.Store, store })
		b.order(t, "1", "a")
		time.Sleep(50 * time.Second) // a pause may last as long
		synctest.Wait()
		if stalled := b.Stalled(time.Now()); stalled > 0 {
			t.Errorf("stalled for %v while a pause may last", stalled)
		}
		b.order(t, "1", "b") // the first one expires
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if stalled := b.Stalled(time.Now()); stalled < time.Minute {
			t.Errorf("stalled for %v, after 90 s without a place", stalled)
		}
		store.closed.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if stalled := b.Stalled(time.Now()); stalled > 0 {
			t.Errorf("stalled for %v, while orders are delivered", stalled)
		}
	})
}
