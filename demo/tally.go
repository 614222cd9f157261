package demo

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// ending is how a shopper went home.
type ending uint8

const (
	bought      ending = iota // with an order
	toldSoldOut               // without, there was nothing left
	hadOne                    // with the order of an earlier press, whose answer never came
	turnedAway                // with another final answer
	gaveUp                    // when time was up
	numEndings
)

// mostReasons bounds the words that are counted one by one, whatever the front answers.
const mostReasons = 40

// tally counts what all shoppers saw. It is safe for concurrent use.
type tally struct {
	orders, refusals *stopwatch

	mu      sync.Mutex
	asked   int64
	looked  int64
	kinds   [unanswered + 1]int64
	reasons map[string]int64
	home    [numEndings]int64
}

func newTally() *tally {
	return &tally{orders: newStopwatch(), refusals: newStopwatch(), reasons: map[string]int64{}}
}

// ask counts a press that has no answer yet.
func (t *tally) ask() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked++
}

// look counts a question what became of an order.
func (t *tally) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked++
}

// count counts what a press came to after took.
func (t *tally) count(a reply, took time.Duration) {
	t.mu.Lock()
	t.kinds[a.kind]++
	if a.kind == refused {
		if _, known := t.reasons[a.reason]; !known && len(t.reasons) >= mostReasons {
			a.reason = "other"
		}
		t.reasons[a.reason]++
	}
	t.mu.Unlock()
	switch home, _ := a.settles(); {
	case a.kind == refused:
		t.refusals.record(took)
	case a.kind == admitted && home == bought:
		t.orders.record(took)
	}
}

func (t *tally) leave(how ending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.home[how]++
}

// read gives the counts of the crowd as they are now.
func (t *tally) read() Report {
	r := Report{Order: t.orders.percentiles(), Refusal: t.refusals.percentiles()}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Asked, r.Looked, r.Admitted = t.asked, t.looked, t.kinds[admitted]
	r.Unknown, r.Broken, r.Unanswered = t.kinds[unknown], t.kinds[broken], t.kinds[unanswered]
	r.Bought, r.SoldOut, r.HadOne = t.home[bought], t.home[toldSoldOut], t.home[hadOne]
	r.TurnedAway, r.GaveUp = t.home[turnedAway], t.home[gaveUp]
	for reason, n := range t.reasons {
		r.Refused = append(r.Refused, Refused{Reason: reason, Count: n})
	}
	slices.SortFunc(r.Refused, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return r
}
