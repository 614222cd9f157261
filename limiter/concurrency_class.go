package limiter

import "sync/atomic"

// Classes is how many classes of priority there are.
const Classes = 10

// classQueues are the queues of all classes. Who waits in the highest class has the next place, but for a share that
// goes to those below it: the one of them who has waited longest. So no class waits for ever, however large the crowd
// above it is.
//
// In a queue that is full, a newcomer takes the place of one of the lowest class, whose turn is the last, as long as
// more than that share of the queue is below the newcomer. Where less than that share is below the highest class, a
// newcomer of a lower class takes the place of one of the highest. So both crowds reach the queue.
//
// They change under ConcurrencyLimiter.mu alone. Counts are read without it.
type classQueues struct {
	of      [Classes]queue
	waiting [Classes]atomic.Int64
	share   atomic.Int64 // in percent; 0 = there is one class
	owed    int64        // percent of a place that those below the highest class have not had
	turns   uint64       // how many have come
}

// SetMinShare has classes count, from now on: percent of the places, from 1 to 50, go to those who wait below the
// highest class. 0 is for clients of one class.
func (p *ConcurrencyLimiter) SetMinShare(percent int) {
	p.queues.share.Store(int64(min(max(percent, 0), 50)))
}

func (q *classQueues) push(w *waiter) {
	q.turns++
	w.turn = q.turns
	q.of[w.class].push(w)
	q.waiting[w.class].Add(1)
}

func (q *classQueues) remove(w *waiter) {
	q.of[w.class].remove(w)
	q.waiting[w.class].Add(-1)
}

// next is the class whose turn it is. Someone waits.
func (q *classQueues) next() (class int) {
	highest, oldest := -1, -1
	for c := range q.of {
		if q.of[c].head == nil {
			continue
		}
		if highest >= 0 && (oldest < 0 || q.of[highest].head.turn < q.of[oldest].head.turn) {
			oldest = highest
		}
		highest = c
	}
	if oldest < 0 {
		return highest
	}
	if q.owed += q.share.Load(); q.owed >= 100 {
		q.owed -= 100
		return oldest
	}
	return highest
}

// displaces is the class of which one leaves a queue of most places that is full, for a newcomer; -1 = none.
func (q *classQueues) displaces(class int, most int64) int {
	share := q.share.Load()
	if share == 0 {
		return -1
	}
	kept, below := share*most/100, int64(0) // below = of those below the newcomer
	lowest, highest, belowHighest, all := -1, -1, int64(0), int64(0)
	for c := range q.waiting {
		n := q.waiting[c].Load()
		if n <= 0 {
			continue
		}
		if lowest < 0 {
			lowest = c
		}
		if c < class {
			below += n
		}
		highest, belowHighest = c, all
		all += n
	}
	switch {
	case lowest >= 0 && lowest < class && below > kept:
		return lowest
	case highest > class && belowHighest < kept:
		return highest
	}
	return -1
}
