package room

import (
	"sync"
	"time"

	"sluice/proxy/server"
)

const (
	maxWait   = 30 * time.Second       // for news
	margin    = time.Second            // an answer without news is on its way before the client gives up
	sweepTick = 250 * time.Millisecond // so often it is looked whose wait is over
	goneTicks = 20                     // so many of them are between two looks whether clients are still there
)

// parking holds the requests that wait for news. None of them has a goroutine where event loops serve connections.
type parking struct {
	most int

	mu      sync.Mutex
	waiters map[*waiter]struct{}
	closed  bool
}

// waiter is one parked request: it waits for another phase, or until its number or score is called.
type waiter struct {
	phase         Phase
	number, score int64     // number -1 = it has no ticket; score -1 = it is not in the draw
	until         time.Time // then it is answered without news
	client        server.Client
	resume        func()
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

// end is when a request that came at now, and waits for at most wait, is answered without news.
func end(now time.Time, wait time.Duration) time.Time { return now.Add(wait - min(margin, wait/2)) }

// park suspends a request; false = there are too many, or there is news already, or it cannot wait. The end is news
// for all: a client that has heard of the last chance may ask again when the end has come.
func (p *parking) park(w *waiter, now func() *view) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	// under the lock: wake sees all that were added before
	if p.closed || len(p.waiters) >= p.most || !w.phase.Waits() || w.due(now()) {
		return false
	}
	if w.resume = w.client.Suspend(); w.resume == nil {
		return false
	}
	p.waiters[w] = struct{}{}
	return true
}

// wake answers those for whom v has news.
func (p *parking) wake(v *view) { p.resume(func(w *waiter) bool { return w.due(v) }) }

// sweep answers those who have waited long enough, and with gone those who have left.
func (p *parking) sweep(now time.Time, gone bool) {
	p.resume(func(w *waiter) bool { return !now.Before(w.until) || gone && w.client.Gone() })
}

// resume answers those for whom it is time.
func (p *parking) resume(due func(*waiter) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.waiters {
		if due(w) {
			delete(p.waiters, w)
			w.resume()
		}
	}
}

// close answers all, and parks no more.
func (p *parking) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.resume(func(*waiter) bool { return true })
}

func (p *parking) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiters)
}
