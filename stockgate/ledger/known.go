package ledger

import (
	"hash/maphash"
	"sync/atomic"
)

// known is an order that this desk has seen held or sold. It is never changed once it is kept.
type known struct {
	line       *line
	serial     string
	user       string
	quantity   int64
	derived    bool  // the serial is the desk's own, of a user and a generation
	generation int   // of a derived serial
	bought     int64 // units that the user bought in the generations before
	sold       bool  // confirmed
	until      int64 // ns: forgotten then
}

// replay is the answer to o, whose serial or user k is known by.
func (k *known) replay(o *Order) Outcome {
	switch {
	case len(o.Key) > 0 && (k.user != string(o.User) || k.quantity != o.Quantity):
		return Outcome{Code: OtherOrder, Serial: k.serial}
	case k.sold:
		return Outcome{Code: ReplaySold, Serial: k.serial}
	}
	return Outcome{Code: ReplayHeld, Serial: k.serial}
}

// ways is the number of slots among which one order is kept.
const ways = 8

// memory is a bounded memory of orders under one of their names. Reading takes no lock and writes nothing. An
// order that finds no slot takes that of the one which would be forgotten first, and one that is kept at the same
// moment as another may be lost: what hangs on it is the answer, never a unit.
type memory struct {
	name  func(*known) string
	seed  maphash.Seed
	mask  uint64
	slots []atomic.Pointer[known]
}

// newMemory makes a memory of size orders, a power of two of at least ways.
func newMemory(size int, name func(*known) string) *memory {
	return &memory{name: name, seed: maphash.MakeSeed(), mask: uint64(size/ways - 1), slots: make([]atomic.Pointer[known], size)}
}

// place returns the slots of a name on a line, which have its hash.
func (m *memory) place(hash uint64, l *line) []atomic.Pointer[known] {
	i := ((hash ^ l.hash) & m.mask) * ways
	return m.slots[i : i+ways]
}

// find returns what is kept on l under name at now, or nil.
func (m *memory) find(now int64, l *line, name []byte) *known {
	place := m.place(maphash.Bytes(m.seed, name), l)
	for i := range place {
		if k := place[i].Load(); k != nil && k.line == l && m.name(k) == string(name) && now < k.until {
			return k
		}
	}
	return nil
}

// keep remembers k in place of what was kept under its name.
func (m *memory) keep(k *known) {
	place := m.place(maphash.String(m.seed, m.name(k)), k.line)
	worst := 0
	for i := range place {
		old := place[i].Load()
		if old == nil || old.line == k.line && m.name(old) == m.name(k) {
			worst = i
			break
		}
		if old.until < place[worst].Load().until {
			worst = i
		}
	}
	place[worst].Store(k)
}

// forget drops the order with k's serial that is kept under k's name.
func (m *memory) forget(k *known) {
	place := m.place(maphash.String(m.seed, m.name(k)), k.line)
	for i := range place {
		if old := place[i].Load(); old != nil && old.line == k.line && old.serial == k.serial {
			place[i].CompareAndSwap(old, nil)
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
	sold := *k
	sold.sold = true
	d.remember(&sold)
}
