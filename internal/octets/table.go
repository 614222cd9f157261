package octets

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// Table keeps a T for each SKU, of at most its limit. Finding one takes no lock, writes nothing and allocates nothing.
// It is safe for concurrent use; adding and removing are serialised.
//
// It is a hash table with a fixed number of chains. A node that is removed keeps its next, so that a reader that is
// walking past it still reaches the end. The hash is seeded: clients cannot choose SKUs that share a chain.
type Table[T any] struct {
	seed   maphash.Seed
	mask   uint64
	limit  int64
	chains []atomic.Pointer[node[T]]

	mu  sync.Mutex
	len atomic.Int64 // written under mu
	all []*node[T]   // each at its place
}

type node[T any] struct {
	hash  uint64
	sku   string
	next  atomic.Pointer[node[T]]
	place int // in all
	value T
}

// NewTable makes a table for at most limit SKUs.
func NewTable[T any](limit int) *Table[T] {
	n := 1 << bits.Len(uint(limit))
	return &Table[T]{
		seed: maphash.MakeSeed(), mask: uint64(n - 1), limit: int64(limit), chains: make([]atomic.Pointer[node[T]], n),
	}
}

// Find returns what is kept of sku, or nil.
func (t *Table[T]) Find(sku []byte) *T {
	hash := maphash.Bytes(t.seed, sku)
	for n := t.chains[hash&t.mask].Load(); n != nil; n = n.next.Load() {
		if n.hash == hash && n.sku == string(sku) {
			return &n.value
		}
	}
	return nil
}

// Add returns what is kept of sku, a zero T that begin has filled if there was nothing, or nil when the table is full.
// begin gets a copy of sku, which may belong to a request, and its hash in this table.
func (t *Table[T]) Add(sku []byte, begin func(v *T, sku string, hash uint64)) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := t.Find(sku); v != nil {
		return v
	}
	if t.len.Load() >= t.limit {
		return nil
	}
	n := &node[T]{sku: string(sku), hash: maphash.Bytes(t.seed, sku), place: len(t.all)}
	begin(&n.value, n.sku, n.hash)
	chain := &t.chains[n.hash&t.mask]
	n.next.Store(chain.Load())
	chain.Store(n)
	t.all = append(t.all, n)
	t.len.Add(1)
	return &n.value
}

// Remove takes v out, which is kept of sku. It does nothing where v is out already.
func (t *Table[T]) Remove(sku string, v *T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	link := &t.chains[maphash.String(t.seed, sku)&t.mask]
	for n := link.Load(); n != nil; n = link.Load() {
		if &n.value == v {
			link.Store(n.next.Load())
			last := len(t.all) - 1
			t.all[n.place] = t.all[last]
			t.all[n.place].place = n.place
			t.all[last] = nil
			t.all = t.all[:last]
			t.len.Add(-1)
			return
		}
		link = &n.next
	}
}

// Len is how many SKUs there are.
func (t *Table[T]) Len() int { return int(t.len.Load()) }

// Crowded reports whether more than half of the table is in use.
func (t *Table[T]) Crowded() bool { return t.len.Load() > t.limit/2 }

// Parts is the number of steps in which a walk visits all SKUs.
const TableParts = 8

// Walk visits the SKUs of one part of the table, 0 to Parts-1. visit may remove what it visits.
func (t *Table[T]) Walk(part int, visit func(*T)) {
	n := len(t.chains)
	for i := part * n / TableParts; i < (part+1)*n/TableParts; i++ {
		for e := t.chains[i].Load(); e != nil; e = e.next.Load() {
			visit(&e.value)
		}
	}
}

// All returns what is kept, in no order. It costs what there is, however large the table is.
func (t *Table[T]) All() []*T {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*T, len(t.all))
	for i, n := range t.all {
		all[i] = &n.value
	}
	return all
}
