package stockgate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/layout"
)

// leaving is a source that can be away, and takes its time while it is there.
type leaving struct {
	*Memory
	takes time.Duration
	away  atomic.Bool
}

func (l *leaving) Read(ctx context.Context, skus []string, out []layout.Reading) error {
	if l.away.Load() {
		return errors.New("gone")
	}
	time.Sleep(l.takes)
	return l.Memory.Read(ctx, skus, out)
}

func (l *leaving) ReadUncached(ctx context.Context, skus []string, out []layout.Reading) error {
	return l.Read(ctx, skus, out)
}

func (l *leaving) Ping(ctx context.Context) error { return l.Read(ctx, nil, nil) }

// The stock went below zero while Redis was away for longer than any reading is used: a request then waits for two
// readings, and these may be a whole refresh apart. He hears that it is sold out, however rarely and slowly it is read.
func TestDipped_WhoWaitsForASecondReadingBelowZeroHearsWhatItSays(t *testing.T) {
	for _, allow := range []bool{false, true} {
		for _, refresh := range []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second} {
			synctest.Test(t, func(t *testing.T) {
				src, o, sku := &leaving{Memory: NewMemory(), takes: 60 * time.Millisecond}, options(), []byte("1001")
				o.Refresh, o.Wait, o.AllowOnError = refresh, 150*time.Millisecond, allow
				testkit.Check(t, src.Set(t.Context(), "1001", 10))
				g := open(t, o, src)
				if got := left(g, sku, g.Enter(o.Now(), sku, nil)); got != reject.Admitted {
					t.Fatal(got)
				}
				src.away.Store(true)
				testkit.Must[int64](t)(src.Add(t.Context(), "1001", -13))
				ask := func(d time.Duration) { // there is always a request, or it would be forgotten
					for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
						g.Closed(o.Now(), sku)
					}
				}
				ask(20*refresh + 1300*time.Millisecond) // and it comes back between two turns
				src.away.Store(false)
				for g.Away(o.Now()) > 0 {
					ask(time.Millisecond)
				}
				var crowd sync.WaitGroup
				for range 10 {
					time.Sleep(10 * time.Millisecond)
					crowd.Go(func() {
						if got := g.Enter(o.Now(), sku, nil); got != reject.SoldOut {
							t.Errorf("on_error allow %t, refresh %v: %v", allow, refresh, got)
						}
					})
				}
				crowd.Wait()
			})
		}
	}
}

// A second reading that never comes is not waited for either.
func TestDipped_TheWaitForASecondReadingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, sku := options(), []byte("1001")
		o.Refresh, o.Wait = time.Second, 150*time.Millisecond
		g := stepped(t, o, NewMemory()) // the poller does not run
		e := addEntry(g.table, 0, sku)
		g.poller.publishReading(0, e, reading(10))
		began := time.Now()
		answer := make(chan reject.Reason)
		go func() { answer <- g.Enter(int64(time.Minute), sku, nil) }()
		synctest.Wait()
		g.poller.publishReading(int64(time.Minute), e, reading(-3))
		if got := <-answer; got != reject.StockError {
			t.Error(got)
		}
		if waited := time.Since(began); waited != 1300*time.Millisecond { // of the bubble's own clock
			t.Errorf("waited for %v", waited)
		}
	})
}
