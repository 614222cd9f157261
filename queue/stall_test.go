package queue

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// miserly is a store that grants no place while it is closed.
type miserly struct {
	Store
	closed atomic.Bool
}

func (m *miserly) Slots(ctx context.Context, c ledger.SlotCall) (int, error) {
	if m.closed.Load() {
		return 0, nil
	}
	return m.Store.Slots(ctx, c)
}

func TestDeliverer_SaysThatOrdersWaitWhileNoPlaceIsGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := &bench{}, &miserly{}
		store.closed.Store(true)
		b.reply = func(int, *upstream.Request) (int, upstream.Outcome) { return 201, upstream.Answered }
		open(t, b, func(o *Options) { store.Store, o.Store = o.Store, store })
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

// Consumers that have left ask for no place: that none was granted before says nothing of now.
func TestDeliverer_ConsumersThatHaveLeftLeaveNoStall(t *testing.T) {
	d, log, begin := &Deliverer{}, slog.New(slog.DiscardHandler), time.Unix(1_800_000_000, 0)
	asks := func(from, to time.Duration) {
		for at := from; at <= to; at += time.Second {
			d.stall.note(begin.Add(at), true, 7, 30*time.Second, log)
		}
	}
	for _, c := range []struct {
		from, to, at time.Duration
		stalled      bool
	}{
		{0, 20 * time.Second, 20 * time.Second, false},
		{21 * time.Second, 40 * time.Second, 40 * time.Second, true},
		{1, 0, 90 * time.Second, true},                                                           // they may ask again
		{1, 0, 2 * time.Minute, false},                                                           // they have left
		{5 * time.Minute, 5*time.Minute + 20*time.Second, 5*time.Minute + 20*time.Second, false}, // and are back
		{5*time.Minute + 21*time.Second, 6 * time.Minute, 6 * time.Minute, true},
	} {
		asks(c.from, c.to)
		if got := d.Stalled(begin.Add(c.at)); (got > 0) != c.stalled {
			t.Errorf("at %v: stalled for %v", c.at, got)
		}
	}
}
