package stockgate

import (
	"sync/atomic"
	"time"
)

// firstRead is the first look at a SKU, for all who wait for it.
type firstRead struct {
	done    chan struct{}
	verdict verdict     // valid once done is closed; unread = the look failed
	again   atomic.Bool // what it found is not believed until the next turn has read it as well
}

// entryOf returns the entry of sku, which is asked for at now, or nil when its stock cannot be known now: the SKU is
// not in the table, and the source is away, too many first looks are waiting, or the table is full of SKUs that are asked
// for.
func (g *Gate) entryOf(now int64, sku []byte) *entry {
	e := g.table.Find(sku)
	if e != nil || len(sku) > longestSKU || g.poller.health.lost() || len(g.poller.queue) == cap(g.poller.queue) {
		return e
	}
	return addEntry(g.table, now, sku)
}

// verdict is what is known of e, which is asked for at now. It waits for a look where that is too old.
func (g *Gate) verdict(now int64, e *entry) verdict {
	v, at := e.reading()
	e.markAsked(now, at)
	rules := g.rules.Load()
	if rules.serves(now, at, v) {
		return v
	}
	// A sample that is too old for a crowd may still serve the first request: it is old since no request came for the
	// SKU, and this one has it read at the next turn. A request before that waits for a look. So an old sample lets at
	// most one request into a shop that has sold out meanwhile.
	rested := v == onSale && now-at <= rules.rests && at >= rules.since
	if rested && !g.poller.health.lost() && e.firstUseOf(at) {
		return v
	}
	return g.firstRead(now, e)
}

// maxWaiting bounds the requests that wait for first readings at one time.
const maxWaiting = 16 << 10

// firstRead waits until e was read, and asks for that if it was not. It returns unread when the stock
// cannot be known: the source is away, the queue is full, or the wait is over; and crowded when too many wait.
func (g *Gate) firstRead(now int64, e *entry) verdict {
	if g.poller.health.lost() {
		return unread
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > maxWaiting {
		return crowded
	}
	for {
		if l := e.pending.Load(); l != nil {
			return g.await(l)
		}
		l := &firstRead{done: make(chan struct{})}
		if !e.pending.CompareAndSwap(nil, l) {
			continue
		}
		// Another look may have ended since the caller found e out of date.
		if v, at := e.reading(); g.rules.Load().serves(now, at, v) {
			e.completeFirstRead(v)
			return v
		}
		if !g.poller.queueFirstRead(e) {
			e.completeFirstRead(unread)
			return unread
		}
		return g.await(l)
	}
}

// await waits for l, but never for longer than a reading may take, and as long once more behind the next turn where it
// takes a second.
func (g *Gate) await(l *firstRead) verdict {
	timer := time.NewTimer(g.rules.Load().wait)
	defer timer.Stop()
	for more := true; ; more = false {
		select {
		case <-l.done:
			return l.verdict
		case <-g.poller.done:
			return unread
		case <-timer.C:
		}
		if !more || !l.again.Load() {
			return unread
		}
		timer.Reset(g.rules.Load().next)
	}
}

// extendFirstRead tells those who wait for a look at e that it takes a second reading.
func (e *entry) extendFirstRead() {
	e.dipped = true
	if l := e.pending.Load(); l != nil {
		l.again.Store(true)
	}
}

// completeFirstRead wakes those who wait for a look at e.
func (e *entry) completeFirstRead(v verdict) {
	if l := e.pending.Swap(nil); l != nil {
		l.verdict = v
		close(l.done)
	}
}
