package ledger

import (
	"hash/maphash"
	"math"
	"sync/atomic"
)

// known is an order that this desk has seen held or sold. Once it is kept nothing of it changes, but that it is sold.
type known struct {
	line       *line
	serial     string
	user       string
	quantity   int64
	derived    bool  // the serial is the desk's own, of a user and a generation
	generation int   // of a derived serial
	bought     int64 // units that the user bought in the generations before
	until      int64 // ns: forgotten then
	sold       atomic.Bool
}

// replay is the answer to o, whose serial or user k is known by.
func (k *known) replay(o *Order) Outcome {
	switch {
	case len(o.Key) > 0 && (k.user != string(o.User) || k.quantity != o.Quantity):
		return Outcome{Code: OtherOrder, Serial: k.serial}
	case k.sold.Load():
		return Outcome{Code: ReplaySold, Serial: k.serial}
	}
	return Outcome{Code: ReplayHeld, Serial: k.serial}
}

// ways is the number of slots among which one order is kept: as many tags as a line of the processor's cache has.
const ways = 8

// memory is a bounded memory of orders under one of their names. Reading takes no lock and writes nothing. An
// order that finds no slot takes that of the one which would be forgotten first, to about a second, and one that is kept
// at the same moment as another may be lost: what hangs on it is the answer, never a unit.
//
// A tag tells of the order in its slot half of its name's hash and when it is forgotten, so that the others of a place,
// which are seldom in any cache, need not be looked at.
type memory struct {
	name  func(*known) string
	seed  maphash.Seed
	mask  uint64
	tags  []atomic.Uint64 // 0 = nothing is there
	slots []atomic.Pointer[known]
}

// newMemory makes a memory of size orders, a power of two of at least ways.
func newMemory(size int, name func(*known) string) *memory {
	return &memory{
		name: name, seed: maphash.MakeSeed(), mask: uint64(size/ways - 1),
		tags: make([]atomic.Uint64, size), slots: make([]atomic.Pointer[known], size),
	}
}

// place returns the tags and slots of a hash.
func (m *memory) place(hash uint64) ([]atomic.Uint64, []atomic.Pointer[known]) {
	i := (hash & m.mask) * ways
	return m.tags[i : i+ways : i+ways], m.slots[i : i+ways : i+ways]
}

// tagOf is the tag of an order whose name has hash.
func tagOf(hash uint64, until int64) uint64 { return hash>>32<<32 | max(1, uint64(uint32(until>>30))) }

// alike reports whether a tag may be that of a name with hash.
func alike(tag, hash uint64) bool { return tag>>32 == hash>>32 && tag != 0 }

// hash is that of a name, on whichever line.
func (m *memory) hash(name []byte) uint64 { return maphash.Bytes(m.seed, name) }

// tagged reports whether something may be kept under a name on a line, by the hashes of both; if not, find finds nothing.
func (m *memory) tagged(hash uint64) bool {
	tags, _ := m.place(hash)
	for i := range tags {
		if alike(tags[i].Load(), hash) {
			return true
		}
	}
	return false
}

// find returns what is kept on l under name at now, or nil.
func (m *memory) find(now int64, l *line, name []byte) *known {
	hash := m.hash(name) ^ l.hash
	tags, slots := m.place(hash)
	for i := range tags {
		if !alike(tags[i].Load(), hash) {
			continue
		}
		if k := slots[i].Load(); k != nil && k.line == l && m.name(k) == string(name) && now < k.until {
			return k
		}
	}
	return nil
}

// keep remembers k in place of what was kept under its name.
func (m *memory) keep(k *known) {
	hash := maphash.String(m.seed, m.name(k)) ^ k.line.hash
	tags, slots := m.place(hash)
	worst, least := 0, uint32(math.MaxUint32)
	for i := range tags {
		tag := tags[i].Load()
		if alike(tag, hash) && m.same(slots[i].Load(), k) {
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

// same reports whether two orders have one name.
func (m *memory) same(old, k *known) bool {
	return old != nil && old.line == k.line && m.name(old) == m.name(k)
}

// forget drops the order with k's serial that is kept under k's name.
func (m *memory) forget(k *known) {
	hash := maphash.String(m.seed, m.name(k)) ^ k.line.hash
	tags, slots := m.place(hash)
	for i := range tags {
		if !alike(tags[i].Load(), hash) {
			continue
		}
		if old := slots[i].Load(); old != nil && old.line == k.line && old.serial == k.serial && slots[i].CompareAndSwap(old, nil) {
			tags[i].Store(0)
		}
	}
}

// recall finds the order that o may repeat, or nil.
func (d *Desk) recall(now int64, l *line, o *Order) *known {
	var k *known
	switch {
	case len(o.Key) > 0:
		k = d.serials.find(now, l, o.Key)
	case len(o.User) > 0:
		k = d.users.find(now, l, o.User)
	}
	if k != nil && !k.derived {
		return k
	}
	if w := d.won(l.roster.Load(), o); k == nil || w != nil && w.generation > k.generation {
		return w // a later order of that user, by another instance
	}
	return k
}

// remember keeps k under its serial, and under its user when another order of that user would repeat it.
func (d *Desk) remember(k *known) {
	d.serials.keep(k)
	if k.derived {
		d.users.keep(k)
	}
}

// settled keeps or forgets the order of a serial after op was done to it.
func (d *Desk) settled(now int64, l *line, serial string, op Op) {
	k := d.serials.find(now, l, []byte(serial))
	if k == nil {
		return
	}
	if op == Release || op == Refund {
		d.serials.forget(k)
		d.users.forget(k)
		return
	}
	k.sold.Store(true)
}
