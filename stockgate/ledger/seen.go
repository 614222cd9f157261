package ledger

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// Why an instance found that a ledger has lost something. The words are those of the scripts, of Stock.Why and of
// the metric's label.
const (
	lostMark    = "mark"    // calls of this instance that were answered are not in the ledger any more
	lostVersion = "version" // the epoch or the version went back
	lostSilent  = "silent"  // Redis is another process, and an instance that sold before has not come to look
	lostEcho    = "echo"    // a reply was another call's, or named holds that were not asked for
	lostKey     = "missing" // the ledger is gone
)

// lossReasons are all that an instance finds; a settler adds lostSettled.
func lossReasons() []string { return []string{lostMark, lostVersion, lostSilent, lostEcho, lostKey} }

// SeenState is what this instance has seen of one ledger, which the ledger must never fall behind. It is safe for
// concurrent use.
type SeenState struct {
	mu         sync.Mutex
	epoch, ver int64
	sale       int64     // the latest sale of the SKU that this instance has seen or heard of
	answered   int64     // the highest call of this instance that was answered in that epoch
	at         time.Time // when it last was
	since      time.Time // since then calls of this process were answered without a pause of silenceFor
	lost       string    // why the ledger must be closed; "" once its epoch is a later one
	gone       int64     // the call that did not find it; 0 = it is there
	progress   progress  // how far this instance has told a later epoch what it knows
	returned   bool      // others may wait for what a process before has seen, and this one has not
	left       bool      // the process before took the mark away, and this one has left none yet
}

// claimFor is how long an instance claims that its mark must be there. The scripts forget marks only much later. Where
// Redis was away for longer none is forgotten, and it may have lost calls: a mark that is there must have them.
const claimFor = 30 * time.Minute

// silenceFor is less than FRESH in mark.lua: after a fail-over a ledger does not wait for who was silent for longer.
const silenceFor = 2 * sweepInterval

// Claim is what one call says that its instance has seen.
type Claim struct {
	Epoch, Ver int64
	Sale       int64  // the latest one of the SKU: the ledger must not be in an earlier one
	Answered   int64  // the highest call of the instance that was answered; below 0 = its mark may be gone
	Lost       string // why the ledger must be closed
}

// Claim is what a call that begins now says. Nothing was seen by a nil state.
func (t *SeenState) Claim() Claim {
	if t == nil {
		return Claim{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := Claim{t.epoch, t.ver, t.sale, t.answered, t.lost}
	if t.left || time.Since(t.at) > claimFor {
		c.Answered = -c.Answered
	}
	return c
}

// Answer is which call was answered, and by which version of the ledger.
type Answer struct{ Call, Epoch, Ver, Sale int64 }

// Learn takes in an answer, to a call that has left its mark or not; answers overtake each other. Where the epoch is a
// later one, there is something to tell from now on. It reports whether the ledger was missing before.
func (t *SeenState) Learn(a Answer, marked bool) (found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sale = max(t.sale, a.Sale)
	if a.Epoch < t.epoch {
		return false
	}
	if a.Epoch > t.epoch {
		t.progress = progress{epoch: a.Epoch, due: t.epoch > 0 || t.returned, ifFrozen: t.epoch == 0}
		t.epoch, t.ver, t.answered, t.lost = a.Epoch, 0, 0, ""
	}
	if marked { // what was only read, the one who changed it misses
		now := time.Now()
		t.ver = max(t.ver, a.Ver)
		if t.since.IsZero() || now.Sub(t.at) > silenceFor {
			t.since = now
		}
		t.answered, t.at, t.left = max(t.answered, a.Call), now, false
	}
	if found = t.gone > 0 && a.Call > t.gone; found {
		t.gone = 0
	}
	return found
}

// markedFor is for how long the calls of this process have left marks in the ledger of sku, without a pause of
// silenceFor. Where there are too many ledgers to watch it is not known, and long enough.
func (t *Seen) markedFor(sku string) time.Duration {
	t.mu.RLock()
	one, full := t.all[sku], len(t.all) >= maxSeen
	t.mu.RUnlock()
	if one == nil && full {
		return math.MaxInt64
	} else if one == nil {
		return 0
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.since.IsZero() || time.Since(one.at) > silenceFor {
		return 0
	}
	return time.Since(one.since)
}

// Miss notes that the call seq did not find the ledger, and reports whether that is new.
func (t *SeenState) Miss(seq int64) (new bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	new, t.gone = t.gone == 0, max(t.gone, seq)
	return new
}

// Suspect notes that the ledger must be closed, from what a call found that had claimed c: not when it has been
// closed since.
func (t *SeenState) Suspect(c Claim, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch == c.Epoch {
		t.lost = why
	}
}

// ForgetAnswered lets the next claim say nothing of answered calls.
func (t *SeenState) ForgetAnswered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered = 0
}

// Lost reports whether the ledger was there and is not any more, and what is to be said of it then.
func (t *SeenState) Lost() (StockVersion, bool) {
	if t == nil {
		return StockVersion{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return StockVersion{Epoch: t.epoch, Ver: t.ver, Sale: t.sale, State: Lost}, t.gone > 0
}

// maxSeen bounds the memory of Seen, some 200 bytes a ledger. An operator makes ledgers, no client does; those that are
// more would be without this watch.
const maxSeen = 1 << 20

// Seen is what this instance has seen of all ledgers. It is safe for concurrent use.
type Seen struct {
	mu  sync.RWMutex
	all map[string]*SeenState

	// Returned says that a process before had this instance's name: others may wait for it at any ledger. It is set before
	// the first use.
	Returned bool
}

// newSeen returns one that has seen nothing.
func newSeen() *Seen { return &Seen{all: make(map[string]*SeenState)} }

// Find returns what was seen of the ledger of sku, or nil.
func (t *Seen) Find(sku string) *SeenState {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.all[sku]
}

// Add returns what was seen of the ledger of sku, which is there, or nil when there are too many.
func (t *Seen) Add(sku string) *SeenState {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[sku]
	if one == nil && len(t.all) < maxSeen {
		one = &SeenState{returned: t.Returned}
		t.all[sku] = one
	}
	return one
}

// HearSale notes a sale of sku that this instance has heard of otherwise than by an answer.
func (t *Seen) HearSale(sku string, sale int64) {
	one := t.Find(sku)
	if one == nil && sale > 0 {
		one = t.Add(sku)
	}
	if one != nil {
		one.mu.Lock()
		defer one.mu.Unlock()
		one.sale = max(one.sale, sale)
	}
}

// SKUs are those of which a ledger was seen.
func (t *Seen) SKUs() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Keys(t.all))
}

// records are what was seen, for a journal.
func (t *Seen) records() (all []seenRecord) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for sku, one := range t.all {
		one.mu.Lock()
		all = append(all, seenRecord{anyBytes(sku), one.epoch, one.ver, one.sale, one.answered})
		one.mu.Unlock()
	}
	return all
}

// replay takes in what a journal says. Calls that were answered count for the name alone that they were made by.
func (t *Seen) replay(c *change) {
	if c.Begin != nil {
		t.forgetAnswered()
		for _, s := range c.Begin.Seen {
			t.restore(s)
		}
	} else if c.Call > 0 && c.Epoch > 0 {
		t.restore(seenRecord{c.SKU, c.Epoch, c.Ver, c.Sale, c.Call})
	}
}

func (t *Seen) restore(s seenRecord) {
	one := t.Add(string(s.SKU))
	if one == nil {
		return
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.sale = max(one.sale, s.Sale)
	if s.Epoch == 0 {
		return
	}
	if s.Epoch > one.epoch {
		one.epoch, one.ver, one.answered = s.Epoch, 0, 0
	}
	if s.Epoch == one.epoch {
		one.ver, one.answered, one.at = max(one.ver, s.Ver), max(one.answered, s.Answered), time.Now()
	}
	one.progress = progress{epoch: one.epoch, due: true, ifFrozen: true} // the process before may have been about to tell
}

// leave notes that the process before took its marks away. One that is there all the same was put back by a fail-over,
// and must have all calls.
func (t *Seen) leave() {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, one := range t.all {
		one.mu.Lock()
		one.left = true
		one.mu.Unlock()
	}
}

// forgetAnswered lets no claim say anything of answered calls.
func (t *Seen) forgetAnswered() {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, one := range t.all {
		one.ForgetAnswered()
	}
}
