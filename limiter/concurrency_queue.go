package limiter

import (
	"sync/atomic"
	"time"
)

// enterSlow waits in the queue, unless a place or the queue's last place was taken meanwhile.
func (p *ConcurrencyLimiter) enterSlow(class int, timeout time.Duration, client Client) Verdict {
	w := p.pool.Get().(*waiter)
	defer p.pool.Put(w) // every way out has taken w off the queue and emptied its channel
	w.class = class
	verdict, waits := p.join(w)
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
	w.timer.Reset(timeout)
	defer w.timer.Stop()
	select {
	case verdict := <-w.handed:
		return verdict
	case <-w.timer.C:
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
	w := p.queues.of[p.queues.next()].head
	p.queues.remove(w)
	return w
}

// join puts w at the end of its queue, in place of another one where that is its right. If a place has become free or
// the queue has become full it does not, and says what holds instead.
func (p *ConcurrencyLimiter) join(w *waiter) (verdict Verdict, waits bool) {
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
			class := p.queues.displaces(w.class, p.maxQueue.Load())
			if class < 0 {
				return QueueFull, false
			}
			out := p.queues.of[class].tail
			p.queues.remove(out)
			p.queues.push(w) // as many wait as before
			out.handed <- QueueFull
			return 0, true
		case p.state.CompareAndSwap(s, s+oneWaiting):
			p.queues.push(w)
			return 0, true
		}
	}
}

// quit takes w off the queue. It reports false if w has been handed a place, or was displaced.
func (p *ConcurrencyLimiter) quit(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !w.queued {
		return false
	}
	p.queues.remove(w)
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

// waiter is one who waits in the queue. It is used again.
type waiter struct {
	handed     chan Verdict // room for one, so that handing over never waits
	timer      *time.Timer  // stopped while not in use
	prev, next *waiter
	class      int
	turn       uint64 // of all who came, this is the how manyth; under ConcurrencyLimiter.mu, as queued
	queued     bool
}

func newWaiter() *waiter {
	w := &waiter{handed: make(chan Verdict, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop() // since Go 1.23 a stopped timer's channel is empty
	return w
}

func (w *waiter) handOver() { w.handed <- Admitted }

// queue is a linked list of those who wait, the first to come at its head.
type queue struct{ head, tail *waiter }

func (q *queue) push(w *waiter) {
	w.queued, w.prev = true, q.tail
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
}

func (q *queue) remove(w *waiter) {
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.queued, w.prev, w.next = false, nil, nil
}
