package limiter

import "sync/atomic"

// Classes is how many classes of priority there are.
const Classes = 10

// classQueues are the queues of all classes. Who waits in the highest class has the next place, but for a share that
// goes to those below it: the one of them who has waited longest. So no class waits for ever, however large the crowd
// above it is.
//
// In a queue that is full, each class below the highest keeps an equal part of that share. A newcomer takes the place
// of one of the class below it that has the most. A class that has less than its part takes it from the highest. So
// all crowds reach the queue.
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

// next is the class whose turn it is. Someone waits. Below the highest class the oldest is next.
func (q *classQueues) next() (class int) {
	highest, low := -1, -1
	for c := range q.of {
		if q.of[c].head == nil {
			continue
		}
		if highest >= 0 && (low < 0 || q.of[highest].head.turn < q.of[low].head.turn) {
			low = highest
		}
		highest = c
	}
	if low < 0 {
		return highest
	}
	if q.owed += q.share.Load(); q.owed >= 100 {
		q.owed -= 100
		return low
	}
	return highest
}

// displaces is the class of which one leaves a queue of most places that is full, for a newcomer; -1 = none. The share
// of those below the highest class is divided among the classes that wait there. None of them loses what is its own,
// and a newcomer of a class that has less takes it from the class that has the most.
func (q *classQueues) displaces(class int, most int64) int {
	share := q.share.Load()
	if share == 0 {
		return -1
	}
	var n [Classes]int64
	highest := class
	for c := range n {
		if n[c] = q.waiting[c].Load(); n[c] > 0 {
			highest = max(highest, c)
		}
	}
	below := int64(0) // classes below the highest, the newcomer's among them
	for c := range highest {
		if n[c] > 0 || c == class {
			below++
		}
	}
	kept := share * most / 100 // by all of them
	own := kept / max(below, 1)
	if kept > 0 {
		own = max(own, 1)
	}
	out := largest(n[:class], own)
	if out < 0 && n[class] < own {
		if out = highest; n[highest] <= own {
			out = largest(n[:], own)
		}
	}
	return out
}

// largest is the class with the most who wait, if these are more than own; -1 = none.
func largest(n []int64, own int64) int {
	class := -1
	for c := range n {
		if n[c] > own {
			class, own = c, n[c]
		}
	}
	return class
}
