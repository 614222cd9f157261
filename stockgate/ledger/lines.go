package ledger

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// lines finds the line of a SKU. Finding takes no lock and writes nothing; adding and removing are serialised.
// A line that is removed keeps its next, so that whoever is walking past it still reaches the end.
type lines struct {
	seed   maphash.Seed // clients cannot choose SKUs that share a chain
	mask   uint64
	limit  int
	chains []atomic.Pointer[line]

	mu    sync.Mutex
	all   []*line // each at its place
	fresh []*line // since somebody asked for newcomers
}

// newLines makes room for at most limit SKUs.
func newLines(limit int) *lines {
	n := 1 << bits.Len(uint(limit))
	return &lines{seed: maphash.MakeSeed(), mask: uint64(n - 1), limit: limit, chains: make([]atomic.Pointer[line], n)}
}

// find returns the line of sku, or nil.
func (t *lines) find(sku []byte) *line {
	hash := maphash.Bytes(t.seed, sku)
	l := t.chains[hash&t.mask].Load()
	for l != nil && (l.hash != hash || l.sku != string(sku)) {
		l = l.next.Load()
	}
	return l
}

// add returns the line of sku, made by open if there was none, or nil when there are too many.
func (t *lines) add(sku []byte, open func(sku string, hash uint64) *line) *line {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.find(sku); l != nil {
		return l
	}
	if len(t.all) >= t.limit {
		return nil
	}
	l := open(string(sku), maphash.Bytes(t.seed, sku)) // a copy: sku belongs to the request
	chain := &t.chains[l.hash&t.mask]
	l.next.Store(chain.Load())
	chain.Store(l)
	l.place = len(t.all)
	t.all = append(t.all, l)
	t.fresh = append(t.fresh, l)
	return l
}

// newcomers returns the lines that were added since the last time.
func (t *lines) newcomers() []*line {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := t.fresh
	t.fresh = nil
	return fresh
}

// remove takes l out, once.
func (t *lines) remove(l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	link := &t.chains[l.hash&t.mask]
	for link.Load() != l {
		link = &link.Load().next
	}
	link.Store(l.next.Load())
	last := len(t.all) - 1
	t.all[l.place] = t.all[last]
	t.all[l.place].place = l.place
	t.all[last] = nil
	t.all = t.all[:last]
}

// each returns all lines.
func (t *lines) each() []*line {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.all)
}

// round yields every line and its place, beginning at a place, a few at a time so that nobody waits for the whole round. It may
// miss lines that move meanwhile, since others are removed.
func (t *lines) round(from int) iter.Seq2[int, *line] {
	return func(yield func(int, *line) bool) {
		var some [256]*line
		for seen := 0; ; {
			n, places := t.copy(some[:], from, seen)
			for i, l := range some[:n] {
				if !yield((from+seen+i)%places, l) {
					return
				}
			}
			if seen += n; n == 0 {
				return
			}
		}
	}
}

// copy copies lines of a round of which so many were seen, and returns how many, and of how many places.
func (t *lines) copy(to []*line, from, seen int) (n, places int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for places = len(t.all); n < len(to) && seen+n < places; n++ {
		to[n] = t.all[(from+seen+n)%places]
	}
	return n, places
}
