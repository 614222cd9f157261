package roomgate

import (
	"sync"

	"sluice/room"
)

// parking holds the requests that wait for news. Each has a goroutine of its own, of its connection.
type parking struct {
	most int

	mu      sync.Mutex
	waiters map[*waiter]struct{}
	closed  bool
}

// waiter is one parked request: it waits for another phase, or until its number or score is called.
type waiter struct {
	phase         room.Phase
	number, score int64 // number -1 = it has no ticket; score -1 = it is not in the draw
	news          chan struct{}
}

// due reports whether v has news for w.
func (w *waiter) due(v *view) bool {
	s := v.state
	if s.Phase != w.phase {
		return true
	}
	if w.score >= 0 {
		return s.Threshold > w.score
	}
	return w.number >= 0 && s.Serving >= w.number
}

// add parks w; false = there are too many, or there is news already.
func (p *parking) add(w *waiter, now func() *view) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.waiters) >= p.most || w.due(now()) { // under the lock: wake sees all that were added before
		return false
	}
	w.news = make(chan struct{})
	p.waiters[w] = struct{}{}
	return true
}

func (p *parking) remove(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiters, w)
}

// wake answers those for whom v has news.
func (p *parking) wake(v *view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.waiters {
		if w.due(v) {
			close(w.news)
			delete(p.waiters, w)
		}
	}
}

// close answers all, and parks no more.
func (p *parking) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for w := range p.waiters {
		close(w.news)
		delete(p.waiters, w)
	}
}

func (p *parking) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiters)
}
