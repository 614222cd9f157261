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
// A door that is removed keeps its next, so that whoever is walking past it still reaches the end.
type lines struct {
	seed   maphash.Seed // clients cannot choose SKUs that share a chain
	mask   uint64
	limit  int
	chains []atomic.Pointer[door]

	mu    sync.Mutex
	all   []*line // each at its place
	fresh []*line // since somebody asked for newcomers
}

// door is how a line is found. It has all that a refusal reads of a SKU, but for long names, in one line of the processor's cache:
// of very many SKUs none is in the cache when somebody asks for it, and what is found by what was found is waited for in turn.
type door struct {
	next  atomic.Pointer[door]
	line  *line
	latch latch
	name  [inline]byte // of a SKU that is not longer
	size  uint8        // of the SKU; inline+1 = it is longer
}

const inline = 23 // bytes

func newDoor(l *line) *door {
	d := &door{line: l, size: uint8(min(len(l.sku), inline+1))}
	if len(l.sku) <= inline {
		copy(d.name[:], l.sku)
	}
	l.latch = &d.latch
	l.unlatch()
	return d
}

// of reports whether d is that of sku.
func (d *door) of(sku []byte) bool {
	if len(sku) > inline {
		return d.size > inline && d.line.sku == string(sku)
	}
	return int(d.size) == len(sku) && string(d.name[:len(sku)]) == string(sku)
}

// newLines makes room for at most limit SKUs.
func newLines(limit int) *lines {
	n := 1 << bits.Len(uint(limit))
	return &lines{seed: maphash.MakeSeed(), mask: uint64(n - 1), limit: limit, chains: make([]atomic.Pointer[door], n)}
}

// door returns that of sku, or nil, and the hash of its line.
func (t *lines) door(sku []byte) (d *door, hash uint64) {
	hash = maphash.Bytes(t.seed, sku)
	d = t.chains[hash&t.mask].Load()
	for d != nil && !d.of(sku) {
		d = d.next.Load()
	}
	return d, hash
}

// find returns the line of sku, or nil.
func (t *lines) find(sku []byte) *line {
	if d, _ := t.door(sku); d != nil {
		return d.line
	}
	return nil
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
	d, chain := newDoor(l), &t.chains[l.hash&t.mask]
	d.next.Store(chain.Load())
	chain.Store(d)
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
	for link.Load().line != l {
		link = &link.Load().next
	}
	link.Store(link.Load().next.Load())
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
