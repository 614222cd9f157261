package limiter

import "sync/atomic"

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
	case q.first.head == nil:
		return &q.others
	case q.others.head == nil:
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

// queue is a linked list of those who wait, the first to come at its head.
type queue struct {
	head, tail *waiter
	length     atomic.Int64
}

func (q *queue) push(w *waiter) {
	w.queue, w.prev = q, q.tail
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.length.Add(1)
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
	w.queue, w.prev, w.next = nil, nil, nil
	q.length.Add(-1)
}
