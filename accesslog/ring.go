package accesslog

import (
	"sync/atomic"

	"sluice/proxy"
)

const (
	ringBits  = 10
	ringSlots = 1 << ringBits // about 1 MiB
	maxRings  = 64
	slotRoom  = 640 // bytes of texts

	maxUser   = 256
	maxText   = 128 // of an id and of a SKU
	maxMethod = 16
)

// ringsFor is how many rings so many processors fill: a power of two.
func ringsFor(processors int) int {
	n := 2
	for n < 2*processors && n < maxRings {
		n *= 2
	}
	return n
}

// ring is a queue of many writers and one reader, in fixed memory (after Vyukov's bounded queue). Nobody waits in it: a
// writer that finds it full is told so.
type ring struct {
	head  atomic.Uint64 // of the writers
	_     [56]byte
	tail  uint64 // of the reader
	slots []slot
	_     [32]byte
}

// slot holds one entry. turn is even while it may be written, 2·lap, and odd while it may be read.
type slot struct {
	turn  atomic.Uint64
	entry proxy.Entry
	room  [slotRoom]byte
}

// Tell implements proxy.Journal.
func (l *Log) Tell(e proxy.Entry) {
	if !l.rings[e.Shard&(len(l.rings)-1)].put(&e) {
		l.dropped[full].Add(1)
	}
}

// put copies e, with its texts; false means that there is no room.
func (r *ring) put(e *proxy.Entry) bool {
	for {
		at := r.head.Load()
		s := &r.slots[at%ringSlots]
		free := at >> ringBits << 1
		switch turn := s.turn.Load(); {
		case turn < free:
			return false
		case turn == free && r.head.CompareAndSwap(at, at+1):
			s.fill(e)
			s.turn.Store(free + 1)
			return true
		}
	}
}

// take hands the next entry to use, which keeps nothing of it; false means that there is none.
func (r *ring) take(use func(*proxy.Entry)) bool {
	s := &r.slots[r.tail%ringSlots]
	ready := r.tail>>ringBits<<1 | 1
	if s.turn.Load() != ready {
		return false
	}
	use(&s.entry)
	s.turn.Store(ready + 1)
	r.tail++
	return true
}

// fill copies what lies in the request. What is too long to be a user's name or a SKU was refused for that, and says
// nothing; a path is cut where the room ends.
func (s *slot) fill(e *proxy.Entry) {
	s.entry = *e
	room := s.room[:0]
	room, s.entry.User = kept(room, e.User, maxUser)
	room, s.entry.ID = kept(room, e.ID, maxText)
	room, s.entry.SKU = kept(room, e.SKU, maxText)
	room, s.entry.Method = kept(room, e.Method, maxMethod)
	_, s.entry.Path = kept(room, e.Path[:min(len(e.Path), cap(room)-len(room))], slotRoom)
}

func kept(room, text []byte, most int) (rest, copied []byte) {
	if len(text) > most {
		return room, nil
	}
	start := len(room)
	room = append(room, text...)
	return room, room[start:]
}
