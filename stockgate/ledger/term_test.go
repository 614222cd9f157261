package ledger

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// No call has more time than Timeout, none has much less, and none outlives the desk.
func TestCallsThatBeginTogetherHaveOneTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := deskOptions()
		o.Timeout = 64 * time.Millisecond
		d := opened(t, o, newShelf(), nil)
		began := time.Now()
		first := d.term()
		time.Sleep(time.Millisecond)
		if d.term() != first {
			t.Error("a call that begins a moment later has a timer of its own")
		}
		time.Sleep(time.Nanosecond)
		second := d.term()
		if until, _ := second.Deadline(); until.Sub(began) != 65*time.Millisecond+1 {
			t.Errorf("a later call ends after %v", until.Sub(began))
		}
		time.Sleep(63*time.Millisecond - 1)
		synctest.Wait()
		if first.Err() != context.DeadlineExceeded || second.Err() != nil {
			t.Errorf("after 64 ms the first is %v, the second %v", first.Err(), second.Err())
		}
		d.Close(t.Context())
		if second.Err() != context.Canceled {
			t.Error("a call outlives its desk:", second.Err())
		}
	})
}
