package demo

import (
	"maps"
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
	answers *stopwatch

	mu         sync.Mutex
	asked      int64
	overloaded int64
	kinds      [unanswered + 1]int64
	reasons    map[string]int64
	home       [numEndings]int64
}

func newTally() *tally {
	return &tally{answers: newStopwatch(), reasons: map[string]int64{}}
}

// addRequest counts a press that has no answer yet.
func (t *tally) addRequest() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked++
}

// count counts what a press came to after took.
func (t *tally) count(a reply, took time.Duration) {
	if a.status > 0 {
		t.answers.record(took)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kinds[a.kind]++
	switch {
	case a.kind == rejected:
		if _, known := t.reasons[a.reason]; !known && len(t.reasons) >= mostReasons {
			a.reason = "other"
		}
		t.reasons[a.reason]++
	case a.kind == admitted && a.status >= 500:
		t.overloaded++
	}
}

func (t *tally) addEnding(how ending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.home[how]++
}

// read gives the counts of the crowd as they are now.
func (t *tally) read() Report {
	r := Report{Answer: t.answers.percentiles()}
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Asked, r.Admitted, r.Overloaded = t.asked, t.kinds[admitted], t.overloaded
	r.Unknown, r.Broken, r.Unanswered = t.kinds[unknown], t.kinds[broken], t.kinds[unanswered]
	r.Bought, r.SoldOut, r.HadOne = t.home[bought], t.home[toldSoldOut], t.home[hadOne]
	r.TurnedAway, r.GaveUp = t.home[turnedAway], t.home[gaveUp]
	r.Rejected = maps.Clone(t.reasons)
	return r
}
