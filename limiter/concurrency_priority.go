package limiter

import (
	"container/list"
	"sync/atomic"
)

// minShare is the share of the others in percent: of the slots that become free while both wait, and of a full queue.
const minShare = 10

// priorityQueues are the queue of the requests that go first, and the queue of the others. The others keep minShare,
// so that a crowd of requests that go first does not starve them. Where no request goes first there is one queue.
//
// They change under ConcurrencyLimiter.mu alone. Counts are read without it.
type priorityQueues struct {
	first, others queue
	owed          int64 // percent of a slot that the others have not had
}

func (q *priorityQueues) of(first bool) *queue {
	if first {
		return &q.first
	}
	return &q.others
}

// next is the queue whose turn it is. At least one request waits.
func (q *priorityQueues) next() *queue {
	switch {
	case q.first.list.Len() == 0:
		return &q.others
	case q.others.list.Len() == 0:
		return &q.first
	}
	if q.owed += minShare; q.owed >= 100 {
		q.owed -= 100
		return &q.others
	}
	return &q.first
}

// displaces is the queue that loses its last request to a newcomer, when most requests wait; nil = none.
func (q *priorityQueues) displaces(first bool, most int64) *queue {
	others, kept := q.others.length.Load(), most*minShare/100
	switch {
	case first && others > kept:
		return &q.others
	case !first && others < kept && q.first.length.Load() > 0:
		return &q.first
	}
	return nil
}

// queue is a list of those who wait, the first to come at its head.
type queue struct {
	list   list.List
	length atomic.Int64 // of list; may be read without the lock
}

func (q *queue) push(w *waiter) {
	w.queue, w.at = q, q.list.PushBack(w)
	q.length.Add(1)
}

func (q *queue) remove(w *waiter) {
	q.list.Remove(w.at)
	w.queue, w.at = nil, nil
	q.length.Add(-1)
}
