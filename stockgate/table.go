package stockgate

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// longestSKU bounds the memory of one entry, in bytes. A longer one has no stock key.
const longestSKU = 256

// table finds entries by SKU. Finding takes no lock and writes nothing; adding and removing are serialised.
//
// It is a hash table with a fixed number of chains. An entry that is removed keeps its next, so that a reader that is
// walking past it still reaches the end. The hash is seeded: clients cannot choose SKUs that share a chain.
type table struct {
	seed   maphash.Seed
	mask   uint64
	limit  int
	chains []atomic.Pointer[entry]

	mu  sync.Mutex
	len atomic.Int64 // written under mu
}

// newTable makes a table for at most limit SKUs.
func newTable(limit int) *table {
	n := 1 << bits.Len(uint(limit))
	return &table{seed: maphash.MakeSeed(), mask: uint64(n - 1), limit: limit, chains: make([]atomic.Pointer[entry], n)}
}

// lookUp returns the entry of sku, or nil.
func (t *table) lookUp(sku []byte) *entry {
	hash := maphash.Bytes(t.seed, sku)
	e := t.chains[hash&t.mask].Load()
	for e != nil && (e.hash != hash || e.sku != string(sku)) {
		e = e.next.Load()
	}
	return e
}

// add returns the entry of sku, a new one if there was none, or nil when the table is full.
func (t *table) add(now int64, sku []byte) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.lookUp(sku); e != nil {
		return e
	}
	if t.len.Load() >= int64(t.limit) {
		return nil
	}
	e := &entry{sku: string(sku), hash: maphash.Bytes(t.seed, sku)} // a copy: sku belongs to the request
	e.asked.Store(now)
	chain := &t.chains[e.hash&t.mask]
	e.next.Store(chain.Load())
	chain.Store(e)
	t.len.Add(1)
	return e
}

// remove takes e out. Only the sampler calls it, once for an entry.
func (t *table) remove(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	link := &t.chains[e.hash&t.mask]
	for link.Load() != e {
		link = &link.Load().next
	}
	link.Store(e.next.Load())
	t.len.Add(-1)
	e.gone = true
}

// crowded reports whether more than half of the table is in use.
func (t *table) crowded() bool { return t.len.Load() > int64(t.limit)/2 }

// parts is the number of steps in which a walk visits all chains.
const parts = 8

// walk visits the entries of one part of the table, which visit may remove.
func (t *table) walk(part int, visit func(*entry)) {
	n := len(t.chains)
	for i := part * n / parts; i < (part+1)*n/parts; i++ {
		for e := t.chains[i].Load(); e != nil; e = e.next.Load() {
			visit(e)
		}
	}
}
