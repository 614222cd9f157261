package limiter

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestConcurrencyMax_PlacesSurviveAStorm lets hand-overs, time-outs, departures and changes of max meet at random.
// Never more are inside than the larger max, everyone is answered, and in the end nothing is taken, no request waits.
func TestConcurrencyMax_PlacesSurviveAStorm(t *testing.T) {
	const largest = 4
	p := NewConcurrencyLimiter(largest, 5)
	var inside, admitted atomic.Int64
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for i := range 500 {
				if p.Acquire(false, time.Duration(i%4)*20*time.Microsecond, who(i%5 > 0)) != Admitted {
					continue
				}
				if n := inside.Add(1); n > largest {
					t.Errorf("%d inside, want at most %d", n, largest)
				}
				admitted.Add(1)
				if i%3 == 0 {
					p.SetMax(1+(g+i)%largest, 5)
				}
				inside.Add(-1)
				p.Release()
			}
		})
	}
	all.Wait()
	expect(t, p, 0, 0)
	if admitted.Load() == 0 {
		t.Error("no request was admitted")
	}
}

func TestConcurrencyMax_RaisedMaxLetsThoseInWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewConcurrencyLimiter(1, 3)
		p.Acquire(false, 0, nil)
		for range 3 {
			go p.Acquire(false, time.Hour, nil)
		}
		synctest.Wait()
		expect(t, p, 1, 3)
		p.SetMax(3, 3)
		expect(t, p, 3, 1)
		p.SetMax(0, 0)
		expect(t, p, 4, 0)
		synctest.Wait()
	})
}

func TestConcurrencyLimiter_RaisingMaxKeepsTheOrder(t *testing.T) {
	p := NewConcurrencyLimiter(1, 2)
	p.Acquire(false, 0, nil)
	p.join(newWaiter(), false)
	p.maxInFlight.Store(2) // what SetMax does first
	if got := p.Acquire(false, 0, nil); got != TimedOut {
		t.Errorf("%v, want timed out: the new room is for the one who waited", got)
	}
}

func TestConcurrencyMax_LoweredMaxIsReachedByThoseWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewConcurrencyLimiter(3, 1)
		for range 3 {
			p.Acquire(false, 0, nil)
		}
		go p.Acquire(false, time.Hour, nil)
		synctest.Wait()
		p.SetMax(1, 1)
		for _, want := range []struct{ inFlight, queued int }{{2, 1}, {1, 1}, {1, 0}, {0, 0}} {
			p.Release()
			expect(t, p, want.inFlight, want.queued)
		}
		synctest.Wait()
	})
}
