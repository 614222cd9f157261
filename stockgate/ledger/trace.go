package ledger

import (
	"sync"
	"sync/atomic"
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

// reasons are all of them.
func reasons() []string { return []string{lostMark, lostVersion, lostSilent, lostEcho, lostKey} }

// trace is what this instance has seen of one ledger, which the ledger must never fall behind.
type trace struct {
	mu         sync.Mutex
	epoch, ver int64
	answered   int64     // the highest call of this instance that was answered in that epoch
	at         time.Time // when it last was
	lost       string    // why the ledger must be closed; "" once its epoch is a later one
	gone       int64     // the call that did not find it; 0 = it is there
	telling    telling   // how far this instance has told a later epoch what it knows
}

// claimFor is how long an instance claims that its mark must be there. The scripts forget marks only much later.
const claimFor = 30 * time.Minute

// claim is what one call says that it has seen.
type claim struct {
	epoch, ver, answered int64
	lost                 string
}

func (t *trace) claim() claim {
	if t == nil {
		return claim{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := claim{t.epoch, t.ver, t.answered, t.lost}
	if time.Since(t.at) > claimFor {
		c.answered = 0
	}
	return c
}

// learn takes in what the reply to the call seq said, which has left its mark or not; replies overtake each other. It
// reports whether there is something to tell from now on, since the epoch is a later one.
func (t *trace) learn(seq, epoch, ver int64, marked bool) (raised bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if epoch < t.epoch {
		return false
	}
	if epoch > t.epoch {
		t.telling.raise(t.epoch)
		raised = t.telling.due
		t.epoch, t.ver, t.answered, t.lost = epoch, 0, 0, ""
	}
	t.ver = max(t.ver, ver)
	if marked {
		t.answered, t.at = max(t.answered, seq), time.Now()
	}
	if seq > t.gone {
		t.gone = 0
	}
	return raised
}

// miss notes that the call seq did not find the ledger, and reports whether that is new.
func (t *trace) miss(seq int64) (new bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	new, t.gone = t.gone == 0, max(t.gone, seq)
	return new
}

// suspect notes that the ledger must be closed, from what a call found that had claimed c: not when it has been
// closed since.
func (t *trace) suspect(c claim, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch == c.epoch {
		t.lost = why
	}
}

// mostTraces bounds the memory of traces, some 200 bytes each. An operator makes ledgers, no client does; whoever
// made more would be without this watch for those.
const mostTraces = 1 << 20

// traces are by SKU. It is safe for concurrent use.
type traces struct {
	mu     sync.RWMutex
	all    map[string]*trace
	raised atomic.Bool // some may have something to tell; nobody looks for them otherwise
}

// find returns the trace of a ledger that was seen before, or nil.
func (t *traces) find(sku string) *trace {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.all[sku]
}

// add returns the trace of a ledger that was seen, or nil when there are too many.
func (t *traces) add(sku string) *trace {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[sku]
	if one == nil && len(t.all) < mostTraces {
		one = &trace{}
		t.all[sku] = one
	}
	return one
}

// each returns the SKUs of all.
func (t *traces) each() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	skus := make([]string, 0, len(t.all))
	for sku := range t.all {
		skus = append(skus, sku)
	}
	return skus
}
