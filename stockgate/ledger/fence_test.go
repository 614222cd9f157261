package ledger

// Time in this file is virtual (testing/synctest).

import (
	"context"
	"testing"
	"time"
)

// slowly answers what was true when it was asked, after a while.
type slowly struct{ takes time.Duration }

func (s slowly) Ask(ctx context.Context, _, _ string) (OrderStatus, error) {
	select {
	case <-time.After(s.takes):
		return OrderNotFound, nil
	case <-ctx.Done():
		return OrderUnknown, ctx.Err()
	}
}

// A shop that looked before the fence can have got the order since.
func TestFence_OnlyAnAnswerFromBehindTheFenceReleases(t *testing.T) {
	at(t, func(t *testing.T) {
		o := testOptions()
		o.Hold, o.Grace, o.OnNotFound = time.Minute, 3*askTimeout/4, fenceDeadline
		s := abandoned(t, o)
		deadline := time.UnixMilli(s.record(testSKU, "k").Deadline)
		d := opened(t, o, s, slowly{askTimeout - time.Millisecond}.Ask)
		for fence := deadline.Add(o.Grace); time.Now().Before(fence.Add(time.Minute)); time.Sleep(100 * time.Millisecond) {
			d.Track(testSKU)
			if s.record(testSKU, "k").Status == 'H' {
				continue
			}
			if since := time.Since(fence); since < askTimeout-time.Millisecond {
				t.Fatalf("released %v behind the fence, by an answer from before it", since)
			}
			return
		}
		t.Error("never released")
	})
}
