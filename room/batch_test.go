package room

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/testkit"
)

// askedAtOnce has a batcher asked 50 times during its first call, which waits for them.
func askedAtOnce(t *testing.T, first error) (calls, asked, failed int64) {
	t.Helper()
	var nCalls, nAsked, nFailed atomic.Int64
	begun, release := make(chan struct{}, 10), make(chan struct{})
	b := &batcher[int, int]{ask: func(_ context.Context, q []int) ([]int, error) {
		nCalls.Add(1)
		nAsked.Add(int64(len(q)))
		begun <- struct{}{}
		<-release
		if q[0] == -1 {
			return q, first
		}
		return q, nil
	}}
	var all sync.WaitGroup
	ask := func(q int) {
		if a, err := b.do(q); err != nil {
			nFailed.Add(1)
		} else if a != q {
			t.Errorf("%d: %d", q, a)
		}
	}
	all.Go(func() { ask(-1) })
	<-begun
	for i := range 50 {
		all.Go(func() { ask(i) })
	}
	testkit.Eventually(t, "all wait", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.pending) == 50
	})
	close(release)
	all.Wait()
	b.work.Wait()
	return nCalls.Load(), nAsked.Load(), nFailed.Load()
}

func TestBatcher_AsksOnceForAllWhoCameMeanwhile(t *testing.T) {
	if calls, asked, failed := askedAtOnce(t, nil); calls != 2 || asked != 51 || failed != 0 {
		t.Errorf("%d calls for %d, %d failed", calls, asked, failed)
	}
}

func TestBatcher_AFailureIsThatOfAllWhoWait(t *testing.T) {
	if calls, _, failed := askedAtOnce(t, errors.New("away")); calls != 1 || failed != 51 {
		t.Errorf("%d calls, %d failed", calls, failed)
	}
}
