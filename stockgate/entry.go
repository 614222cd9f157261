package stockgate

import (
	"sync"
	"sync/atomic"
	"time"

	"sluice/internal/octets"
)

// verdict is what the last look at a SKU found.
type verdict uint8

const (
	unread    verdict = iota // it was not read yet
	onSale                   // units are free
	soldOut                  // none is
	notOnSale                // its status says so
	unknown                  // it has no key
	faulty                   // its keys hold something else than a stock
	crowded                  // too many requests wait for a first reading; no entry has this verdict
	numVerdicts
)

// verdictBits is the room for a verdict beside its time; 60 bits of nanoseconds last for 36 years.
const verdictBits = 3

// entry is what is known of one SKU. Requests read it, and those that are admitted count themselves; all else is
// written by the poller.
type entry struct {
	sku string

	packed  atomic.Int64 // verdict, and the time at which the read began, in one word: they can never disagree
	free    atomic.Int64 // units, of the verdict onSale
	asked   atomic.Int64 // ns; at most askedEvery behind, and never before a reading that a request came after
	pending atomic.Pointer[firstRead]

	readings atomic.Uint64 // ever; written by the poller
	// The poller's own.
	sampled bool // among the active
	gone    bool // removed from the table
	dipped  bool // the last reading was below zero, and was not believed
	emptied bool // it was sold out once: what is free came back

	_        [64]byte // those who only look must not feel those who enter
	inFlight atomic.Int64
	aged     atomic.Int64 // ns; the reading that has served one request although it was old
	orderQuota
}

// longestSKU bounds the memory of one entry, in bytes. A longer one has no stock key.
const longestSKU = 256

// addEntry returns the entry of sku, a new one that was asked for at now if there was none, or nil when the table is
// full.
func addEntry(t *octets.Table[entry], now int64, sku []byte) *entry {
	return t.Add(sku, func(e *entry, sku string, _ uint64) {
		e.sku = sku
		e.asked.Store(now)
	})
}

// reading returns the verdict and the time of the look behind it.
func (e *entry) reading() (v verdict, at int64) {
	word := e.packed.Load()
	return verdict(word & (1<<verdictBits - 1)), word >> verdictBits
}

// publish makes a verdict visible. Only the poller calls it.
func (e *entry) publish(v verdict, free, at int64) {
	e.free.Store(free)
	e.packed.Store(at<<verdictBits | int64(v))
}

// askedEvery is how precisely it is known when a SKU was asked for last.
const askedEvery = int64(100 * time.Millisecond)

// markAsked notes that the SKU is asked for at now, by a request that knows of the reading of the time at. A crowd
// writes once for each reading, and ten times a second where there is none; otherwise it only looks.
func (e *entry) markAsked(now, at int64) {
	if last := e.asked.Load(); now-last > askedEvery || last < at && now > last {
		e.asked.Store(now)
	}
}

// wanted reports whether a request has asked since the reading of the time at began.
func (e *entry) wanted(at int64) bool { return e.asked.Load() >= at }

// firstUseOf reports whether the old reading of the time at has served no request yet. It says so once.
func (e *entry) firstUseOf(at int64) bool { return e.aged.Load() != at && e.aged.Swap(at) != at }

// admitWithinQuota counts one request in where a try is left. A rejection writes nothing, but for one that came too
// late for the last try. It counts before it takes the try, and the poller looks in the other order: no try is ever
// missed.
func (e *entry) admitWithinQuota() bool {
	if e.spent() {
		return false
	}
	e.inFlight.Add(1)
	if e.acquire() {
		return true
	}
	e.inFlight.Add(-1)
	return false
}

// cancel takes back admitWithinQuota for a request that did not reach the upstream. The try comes first: a reading
// between the two steps then grants too few, and never too many.
func (e *entry) cancel() {
	e.putBack()
	e.inFlight.Add(-1)
}

// admit counts one request in that no number bounds, since none is known.
func (e *entry) admit() { e.inFlight.Add(1) }

// release counts one request out. It stops at zero: an entry may have been forgotten in the very instant in which a
// request entered.
func (e *entry) release() {
	e.ended.Add(1)
	for {
		n := e.inFlight.Load()
		if n <= 0 || e.inFlight.CompareAndSwap(n, n-1) {
			return
		}
	}
}

// untracked are requests that on_error has admitted while nothing was kept of their SKU: no entry counts them. Were
// they not told apart when they leave, each would count another one out, and per_unit let in one more. There are never
// more than requests in flight.
type untracked struct {
	all atomic.Int64
	mu  sync.Mutex
	of  map[string]int64 // by SKU, above 0
}

func (s *untracked) add(sku []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[string]int64)
	}
	s.of[string(sku)]++
	s.all.Add(1)
}

// remove counts one out; false = there is none of this SKU. It may be another one of the same SKU that leaves: until
// the stray does, one too many counts as in flight, and never one too few.
func (s *untracked) remove(sku []byte) bool {
	if s.all.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.of[string(sku)]
	switch n {
	case 0:
		return false
	case 1:
		delete(s.of, string(sku))
	default:
		s.of[string(sku)] = n - 1
	}
	s.all.Add(-1)
	return true
}
