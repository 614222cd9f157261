package ledger

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
)

// skuIndex finds the queue of a SKU. Finding takes no lock and writes nothing; adding and removing are serialised. It
// is a hash table with a fixed number of chains. A queue that is removed keeps its next, so that a reader that is
// walking past it still reaches the end. The hash is seeded: clients cannot choose SKUs that share a chain.
type skuIndex struct {
	seed   maphash.Seed
	mask   uint64
	limit  int
	chains []atomic.Pointer[skuQueue]

	mu  sync.Mutex
	all []*skuQueue // each at its place
}

// newSKUIndex makes an index of at most limit SKUs.
func newSKUIndex(limit int) *skuIndex {
	n := 1 << bits.Len(uint(limit))
	return &skuIndex{
		seed: maphash.MakeSeed(), mask: uint64(n - 1), limit: limit, chains: make([]atomic.Pointer[skuQueue], n),
	}
}

// find returns the queue of sku, or nil.
func (x *skuIndex) find(sku []byte) *skuQueue {
	hash := maphash.Bytes(x.seed, sku)
	q := x.chains[hash&x.mask].Load()
	for q != nil && (q.hash != hash || q.sku != string(sku)) {
		q = q.next.Load()
	}
	return q
}

// add returns the queue of sku, made by open if there was none, or nil when there are too many.
func (x *skuIndex) add(sku []byte, open func(sku string) *skuQueue) *skuQueue {
	x.mu.Lock()
	defer x.mu.Unlock()
	if q := x.find(sku); q != nil {
		return q
	}
	if len(x.all) >= x.limit {
		return nil
	}
	q := open(string(sku)) // a copy: sku belongs to the request
	q.hash = maphash.Bytes(x.seed, sku)
	chain := &x.chains[q.hash&x.mask]
	q.next.Store(chain.Load())
	q.place = len(x.all)
	x.all = append(x.all, q)
	chain.Store(q)
	return q
}

// remove takes q out, once.
func (x *skuIndex) remove(q *skuQueue) {
	x.mu.Lock()
	defer x.mu.Unlock()
	link := &x.chains[q.hash&x.mask]
	for link.Load() != q {
		link = &link.Load().next
	}
	link.Store(q.next.Load())
	last := len(x.all) - 1
	x.all[q.place] = x.all[last]
	x.all[q.place].place = q.place
	x.all[last] = nil
	x.all = x.all[:last]
}

// each returns all queues.
func (x *skuIndex) each() []*skuQueue {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.all)
}
