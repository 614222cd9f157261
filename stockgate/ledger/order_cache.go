package ledger

import (
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"
)

// knownOrder is an order that this instance has seen held or sold. Once it is kept nothing of it changes, but that it
// is sold, or over.
type knownOrder struct {
	Item       // without a Request
	queue      *skuQueue
	derived    bool  // the serial is the reserver's own, of a user, a sale of the SKU and a generation
	sale       int64 // of a derived serial
	generation int   // of a derived serial
	bought     int64 // units that the user bought in the generations before
	until      int64 // ns: forgotten then
	sold       atomic.Bool
	over       atomic.Bool // of a derived serial: it came to nothing, and tells at which generation to go on
}

// replay is the answer to o, whose serial or user k is known by.
func (k *knownOrder) replay(o *Order) Outcome {
	switch {
	case len(o.Key) > 0 && (k.User != string(o.User) || k.Quantity != o.Quantity || k.Cart != o.Cart):
		return Outcome{Code: OtherOrder, Serial: k.Serial}
	case k.sold.Load():
		return Outcome{Code: ReplaySold, Serial: k.Serial}
	}
	return Outcome{Code: ReplayHeld, Serial: k.Serial}
}

// cacheWays is the number of slots among which one order is kept: as many tags as a line of the processor's cache has.
const cacheWays = 8

// orderCache is a bounded cache of orders under one of their names. Reading takes no lock and writes nothing. An
// order that finds no slot takes that of the one which would be forgotten first, to about a second, and one that is
// kept at the same moment as another may be lost: what hangs on it is the answer, never a unit.
//
// A tag tells of the order in its slot half of its name's hash and when it is forgotten, so that the others of a place,
// which are seldom in any cache, need not be looked at.
type orderCache struct {
	name  func(*knownOrder) string
	seed  maphash.Seed
	mask  uint64
	tags  []atomic.Uint64 // 0 = nothing is there
	slots []atomic.Pointer[knownOrder]
}

// newOrderCache makes a cache of size orders, a power of two of at least cacheWays.
func newOrderCache(size int, name func(*knownOrder) string) *orderCache {
	return &orderCache{
		name: name, seed: maphash.MakeSeed(), mask: uint64(size/cacheWays - 1),
		tags: make([]atomic.Uint64, size), slots: make([]atomic.Pointer[knownOrder], size),
	}
}

// place returns the tags and slots of a hash.
func (m *orderCache) place(hash uint64) ([]atomic.Uint64, []atomic.Pointer[knownOrder]) {
	i := (hash & m.mask) * cacheWays
	return m.tags[i : i+cacheWays : i+cacheWays], m.slots[i : i+cacheWays : i+cacheWays]
}

// tagOf is the tag of an order whose name has hash.
func tagOf(hash uint64, until int64) uint64 { return hash>>32<<32 | max(1, uint64(uint32(until>>30))) }

// alike reports whether a tag may be that of a name with hash.
func alike(tag, hash uint64) bool { return tag>>32 == hash>>32 && tag != 0 }

// hash is that of a name, on whichever line.
func (m *orderCache) hash(name []byte) uint64 { return maphash.Bytes(m.seed, name) }

// find returns what is kept on l under name at now, or nil.
func (m *orderCache) find(now int64, q *skuQueue, name []byte) *knownOrder {
	hash := m.hash(name) ^ q.hash
	tags, slots := m.place(hash)
	for i := range tags {
		if !alike(tags[i].Load(), hash) {
			continue
		}
		if k := slots[i].Load(); k != nil && k.queue == q && m.name(k) == string(name) && now < k.until {
			return k
		}
	}
	return nil
}

// keep remembers k in place of what was kept under its name.
func (m *orderCache) keep(k *knownOrder) {
	hash := maphash.String(m.seed, m.name(k)) ^ k.queue.hash
	tags, slots := m.place(hash)
	worst, least := 0, uint32(math.MaxUint32)
	for i := range tags {
		tag := tags[i].Load()
		if old := slots[i].Load(); alike(tag, hash) && old != nil && old.queue == k.queue && m.name(old) == m.name(k) {
			worst = i
			break
		}
		if uint32(tag) < least { // nothing, which has no time, is the least
			worst, least = i, uint32(tag)
		}
	}
	slots[worst].Store(k)
	tags[worst].Store(tagOf(hash, k.until))
}

// forget drops the order with k's serial that is kept under k's name.
func (m *orderCache) forget(k *knownOrder) {
	hash := maphash.String(m.seed, m.name(k)) ^ k.queue.hash
	tags, slots := m.place(hash)
	for i := range tags {
		if !alike(tags[i].Load(), hash) {
			continue
		}
		if old := slots[i].Load(); old != nil && old.queue == k.queue && old.Serial == k.Serial &&
			slots[i].CompareAndSwap(old, nil) {
			tags[i].Store(0)
		}
	}
}

// known finds the order that o may repeat, or nil.
func (r *core) known(now int64, q *skuQueue, o *Order) *knownOrder {
	switch {
	case len(o.Key) > 0:
		return r.serials.find(now, q, o.Key)
	case len(o.User) > 0:
		if k := r.users.find(now, q, o.User); k != nil && k.sale == q.sale.Load() && !k.over.Load() {
			return k
		}
	}
	return nil
}

// keep remembers that p's order is held or sold.
func (p *pendingOrder) keep(r *core, now int64, sold bool) {
	p.until = r.knownUntil(now)
	p.sold.Store(sold)
	r.serials.keep(p.knownOrder)
	if p.derived {
		r.users.keep(p.knownOrder)
	}
}

// keepOver remembers that the user's orders up to k came to nothing, or were counted.
func (r *core) keepOver(now int64, k *knownOrder) {
	k.until = r.knownUntil(now)
	k.over.Store(true)
	r.users.keep(k)
}

func (r *core) knownUntil(now int64) int64 {
	return now + int64(r.live.Load().hold) + int64(time.Minute)
}

// noteSettled keeps or forgets the order of a serial after op was done to it.
func (r *core) noteSettled(q *skuQueue, serial string, op Op) {
	now := r.o.Now()
	k := r.serials.find(now, q, []byte(serial))
	switch {
	case k == nil:
	case op == Release || op == Refund:
		r.serials.forget(k)
		if last := r.users.find(now, q, []byte(k.User)); last != nil && last.Serial == serial {
			last.over.Store(true)
		}
	default:
		k.sold.Store(true)
	}
}
