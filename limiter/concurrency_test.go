package limiter

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// expect fails the test if p does not have that many places taken and that many waiters.
func expect(t *testing.T, p *ConcurrencyLimiter, inFlight, queued int) {
	t.Helper()
	if p.InFlight() != inFlight || p.Queued() != queued {
		t.Errorf("%d in flight, %d queued; want %d, %d", p.InFlight(), p.Queued(), inFlight, queued)
	}
}

func TestConcurrencyLimiter_WithoutAMaxNoRequestIsRejected(t *testing.T) {
	p := NewConcurrencyLimiter(0, 0)
	for range 1000 {
		if got := p.Acquire(false, 0, nil); got != Admitted {
			t.Fatalf("%v, want admitted", got)
		}
	}
	expect(t, p, 1000, 0)
}

func TestConcurrency_WaitingEndsAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewConcurrencyLimiter(1, 2)
		p.Acquire(false, 0, nil)
		for range 3 { // the second and third use the first's waiter again
			start := time.Now()
			if got := p.Acquire(false, 200*time.Millisecond, nil); got != TimedOut {
				t.Errorf("%v, want timed out", got)
			}
			if waited := time.Since(start); waited != 200*time.Millisecond {
				t.Errorf("waited for %v, want 200ms", waited)
			}
			expect(t, p, 1, 0)
		}
	})
}

// who is a client that stays or has gone.
type who bool

func (w who) Gone() bool { return !bool(w) }

const (
	stays who = true
	left  who = false
)

func TestConcurrency_ThePlaceOfOneWhoIsGoneGoesToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewConcurrencyLimiter(1, 3)
		p.Acquire(false, 0, nil)
		ends := make([]Verdict, 3)
		for i, w := range []who{left, left, stays} {
			go func() { ends[i] = p.Acquire(false, time.Hour, w) }()
			synctest.Wait()
		}
		p.Release()
		synctest.Wait()
		if want := []Verdict{Gone, Gone, Admitted}; !slices.Equal(ends, want) {
			t.Errorf("%v, want %v", ends, want)
		}
		expect(t, p, 1, 0)
	})
}

func TestConcurrency_WhoNeedNotWaitIsNotAskedWhetherHeIsThere(t *testing.T) {
	if got := NewConcurrencyLimiter(1, 1).Acquire(false, 0, left); got != Admitted {
		t.Errorf("%v, want admitted: only a wait is worth a look", got)
	}
}

func TestConcurrency_PlacesAreHandedOverInTheOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewConcurrencyLimiter(1, 10)
		p.Acquire(false, 0, nil)
		var order []int
		for i := range 10 {
			go func() {
				patience := time.Hour
				if i == 0 || i == 4 || i == 9 { // head, middle, tail
					patience = time.Second
				}
				if p.Acquire(false, patience, nil) == Admitted {
					order = append(order, i) // one at a time: there is one place
					p.Release()
				}
			}()
			synctest.Wait() // i is in the queue
		}
		time.Sleep(time.Minute) // of the bubble
		expect(t, p, 1, 7)
		p.Release()
		synctest.Wait()
		want := []int{1, 2, 3, 5, 6, 7, 8}
		if len(order) != len(want) {
			t.Fatalf("order %v, want %v", order, want)
		}
		for i := range want {
			if order[i] != want[i] {
				t.Fatalf("order %v, want %v", order, want)
			}
		}
		expect(t, p, 0, 0)
	})
}

func TestConcurrency_NewcomersDoNotOvertakeTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewConcurrencyLimiter(1, 2)
		p.Acquire(false, 0, nil)
		admitted := make(chan struct{})
		go func() { p.Acquire(false, time.Hour, nil); close(admitted) }()
		synctest.Wait()
		p.Release() // the place is the waiter's now, even if it has not run yet
		if got := p.Acquire(false, time.Millisecond, nil); got != TimedOut {
			t.Errorf("%v, want timed out: the place went to the one who waited", got)
		}
		<-admitted
	})
}

// TestConcurrency_HandOverAtTheMomentOfTheTimeoutLosesNoPlace has the place come free at the very instant at which
// the wait ends: whichever wins, the place is either used or free afterwards.
func TestConcurrency_HandOverAtTheMomentOfTheTimeoutLosesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range 200 {
			p := NewConcurrencyLimiter(1, 1)
			p.Acquire(false, 0, nil)
			time.AfterFunc(time.Millisecond, p.Release)
			switch got := p.Acquire(false, time.Millisecond, who(i%2 == 0)); got {
			case Admitted:
				synctest.Wait()
				expect(t, p, 1, 0)
			case TimedOut, Gone:
				synctest.Wait()
				expect(t, p, 0, 0)
			default:
				t.Errorf("%v, want admitted, timed out or gone", got)
			}
			time.Sleep(time.Second) // of the bubble: let the function end
		}
	})
}

// The next two are about moments that a race seldom hits: they call what Acquire calls, in the unlucky order.

func TestConcurrency_PlaceHandedOverBeforeTheTimeoutIsUsed(t *testing.T) {
	p, w := NewConcurrencyLimiter(1, 1), newWaiter()
	p.Acquire(false, 0, nil)
	p.join(w, false)
	p.Release()
	if got := p.timedOut(w); got != Admitted || len(w.handed) != 0 {
		t.Errorf("%v, %d places left over; want admitted, 0", got, len(w.handed))
	}
	expect(t, p, 1, 0)
}

func TestConcurrency_QueueIsJoinedOnlyIfItIsStillNeededAndHasRoom(t *testing.T) {
	p := NewConcurrencyLimiter(1, 1)
	if got, waits := p.join(newWaiter(), false); got != Admitted || waits {
		t.Errorf("%v, waits: %v; want admitted: a place became free", got, waits)
	}
	if _, waits := p.join(newWaiter(), false); !waits {
		t.Error("did not wait in an empty queue")
	}
	if got, waits := p.join(newWaiter(), false); got != QueueFull || waits {
		t.Errorf("%v, waits: %v; want queue full: another took its last place", got, waits)
	}
	expect(t, p, 1, 1)
}

func TestConcurrencyLimiter_QueueKeepsItsOrderWhenRequestsLeave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var plain, idle []*waiter
		for range 4 {
			idle = append(idle, &waiter{})
		}
		for range 40 {
			switch i := rapid.IntRange(0, 5).Draw(t, "i"); {
			case i < len(plain): // a request leaves the queue
				q.remove(plain[i])
				idle, plain = append(idle, plain[i]), slices.Delete(plain, i, i+1)
			case len(idle) > 0: // and comes back
				q.push(idle[0])
				plain, idle = append(plain, idle[0]), idle[1:]
			}
			var forwards []*waiter
			for e := q.list.Front(); e != nil; e = e.Next() {
				forwards = append(forwards, e.Value.(*waiter))
			}
			if !slices.Equal(forwards, plain) || int(q.length.Load()) != len(plain) {
				t.Fatalf("queue %v, want %v", forwards, plain)
			}
		}
	})
}

func TestConcurrency_RejectionForAFullQueueWritesNothing(t *testing.T) {
	p := NewConcurrencyLimiter(1, 0)
	p.Acquire(false, 0, nil)
	p.mu.Lock() // a rejection that wanted the queue would wait for ever
	defer p.mu.Unlock()
	before := p.state.Load()
	if got := p.Acquire(false, time.Hour, nil); got != QueueFull || p.state.Load() != before {
		t.Errorf("%v, state %x; want queue full, %x", got, p.state.Load(), before)
	}
}

func TestConcurrency_LeaveWithoutEnterIsAMistake(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Release without Acquire passed in silence")
		}
	}()
	NewConcurrencyLimiter(1, 1).Release()
}

func TestConcurrency_PlacesAllocateNothing(t *testing.T) {
	p := NewConcurrencyLimiter(1, 0)
	n := testing.AllocsPerRun(1000, func() { p.Acquire(false, 0, nil); p.Acquire(false, 0, nil); p.Release() })
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestConcurrencyLimiter_PeekTellsOfAFullQueueAlone(t *testing.T) {
	synctest.Test(t, peeksAtAFullQueue)
}

func peeksAtAFullQueue(t *testing.T) {
	l := NewConcurrencyLimiter(1, 1)
	if l.Peek(false) {
		t.Error("full although a slot is free")
	}
	l.Acquire(false, 0, nil)
	if l.Peek(false) {
		t.Error("full although the queue is empty")
	}
	done := make(chan Verdict)
	go func() { done <- l.Acquire(false, time.Minute, nil) }()
	synctest.Wait()
	if !l.Peek(false) {
		t.Error("not full although slot and queue are taken")
	}
	l.Release()
	if v := <-done; v != Admitted {
		t.Errorf("the queue's first was %v", v)
	}
	if l.SetMax(1, 0); !l.Peek(false) {
		t.Error("not full although there is no queue")
	}
	l.Release()
}

func TestConcurrencyLimiter_TriesWithoutAWait(t *testing.T) { synctest.Test(t, triesWithoutAWait) }

func triesWithoutAWait(t *testing.T) {
	p := NewConcurrencyLimiter(1, 1)
	if !p.TryAcquire() || p.TryAcquire() {
		t.Fatal("of one place the first has to have it, and no other")
	}
	waits := make(chan Verdict)
	go func() { waits <- p.Acquire(false, time.Hour, nil) }()
	synctest.Wait()
	p.Release()
	if <-waits != Admitted || p.TryAcquire() {
		t.Error("a place went past the one who waits for it")
	}
	p.Release()
	if !p.TryAcquire() {
		t.Error("a free place was not given")
	}
}
