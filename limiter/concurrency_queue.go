package limiter

import (
	"container/list"
	"sync/atomic"
	"time"
)

// enterSlow waits in the queue, unless a place or the queue's last place was taken meanwhile.
func (p *ConcurrencyLimiter) enterSlow(first bool, timeout time.Duration, client Client) Verdict {
	w := newWaiter()
	verdict, waits := p.join(w, first)
	if !waits {
		return verdict
	}
	verdict = p.await(w, timeout)
	if verdict == Admitted && client != nil && client.Gone() {
		verdict = Gone
		p.Release()
	}
	p.waits.count(verdict)
	return verdict
}

// await waits until w is handed a place or displaced, or for timeout.
func (p *ConcurrencyLimiter) await(w *waiter, timeout time.Duration) Verdict {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case verdict := <-w.handed:
		return verdict
	case <-timer.C:
		return p.timedOut(w)
	}
}

func (p *ConcurrencyLimiter) timedOut(w *waiter) Verdict {
	if p.quit(w) {
		return TimedOut
	}
	return <-w.handed // the place came first: use it
}

// popWaiter takes the one whose turn it is off the queue, which is not empty.
func (p *ConcurrencyLimiter) popWaiter() *waiter {
	q := p.queues.next()
	w := q.list.Front().Value.(*waiter)
	q.remove(w)
	return w
}

// join puts w at the end of its queue, in place of another one where that is its right. If a place has become free or
// the queue has become full it does not, and says what holds instead.
func (p *ConcurrencyLimiter) join(w *waiter, first bool) (verdict Verdict, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		s := p.state.Load()
		switch {
		case waiting(s) == 0 && p.room(s):
			if p.state.CompareAndSwap(s, s+oneInFlight) {
				return Admitted, false
			}
		case waiting(s) >= p.maxQueue.Load():
			q := p.queues.displaces(first, p.maxQueue.Load())
			if q == nil {
				return QueueFull, false
			}
			out := q.list.Back().Value.(*waiter)
			q.remove(out)
			p.queues.of(first).push(w) // as many wait as before
			out.handed <- QueueFull
			return 0, true
		case p.state.CompareAndSwap(s, s+oneWaiting):
			p.queues.of(first).push(w)
			return 0, true
		}
	}
}

// quit takes w off the queue. It reports false if w has been handed a place, or was displaced.
func (p *ConcurrencyLimiter) quit(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.queue == nil {
		return false
	}
	w.queue.remove(w)
	p.state.Add(^uint64(oneWaiting - 1)) // minus oneWaiting
	return true
}

// leaveSlow hands the place to the one whose turn it is. Above a max that was lowered meanwhile, the place goes.
func (p *ConcurrencyLimiter) leaveSlow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		s := p.state.Load()
		if waiting(s) != 0 && p.room(s-oneInFlight) {
			p.state.Store(s - oneWaiting)
			p.popWaiter().handOver()
			return
		}
		if p.state.CompareAndSwap(s, s-oneInFlight) {
			return
		}
	}
}

// waits counts how waiting in the queue has ended. It is written by those who waited, never by a rejection.
type waits struct{ admitted, timedOut, gone, displaced atomic.Uint64 }

func (n *waits) count(end Verdict) {
	switch end {
	case Admitted:
		n.admitted.Add(1)
	case TimedOut:
		n.timedOut.Add(1)
	case Gone:
		n.gone.Add(1)
	case QueueFull:
		n.displaced.Add(1)
	}
}

// waiter is one who waits in the queue.
type waiter struct {
	handed chan Verdict  // room for one, so that handing over never waits
	queue  *queue        // in which it waits; nil = it does not wait; under ConcurrencyLimiter.mu
	at     *list.Element // in queue
}

func newWaiter() *waiter { return &waiter{handed: make(chan Verdict, 1)} }

func (w *waiter) handOver() { w.handed <- Admitted }
