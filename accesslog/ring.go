package accesslog

import (
	"sync/atomic"

	"sluice/proxy/metrics"
)

const (
	ringBits  = 10
	ringSlots = 1 << ringBits // about 1 MiB
	maxRings  = 64
	textSize  = 640 // bytes of a record's texts

	maxUser   = 256
	maxText   = 128 // of a request ID and of a SKU
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

// ring is a queue of many writers and one reader, in fixed memory (after Vyukov's bounded queue). A writer never waits:
// put reports a full ring.
type ring struct {
	head  atomic.Uint64 // of the writers
	_     [56]byte
	tail  uint64 // of the reader
	slots []slot
	_     [32]byte
}

// slot holds one record. state is 2·lap while the slot may be written, and 2·lap+1 while it may be read.
type slot struct {
	state  atomic.Uint64
	record metrics.AccessRecord
	texts  [textSize]byte
}

// Log implements metrics.AccessLogger. It copies r, or counts it as dropped when the writer is behind.
func (l *Log) Log(r metrics.AccessRecord) {
	if !l.rings[r.Shard&(len(l.rings)-1)].push(&r) {
		l.dropped[full].Add(1)
	}
}

// push copies the record with its texts; false = the ring is full.
func (r *ring) push(record *metrics.AccessRecord) bool {
	for {
		at := r.head.Load()
		s := &r.slots[at%ringSlots]
		free := at >> ringBits << 1
		switch state := s.state.Load(); {
		case state < free:
			return false
		case state == free && r.head.CompareAndSwap(at, at+1):
			s.fill(record)
			s.state.Store(free + 1)
			return true
		}
	}
}

// pop calls use with the next record, of which use keeps nothing; false = the ring is empty.
func (r *ring) pop(use func(*metrics.AccessRecord)) bool {
	s := &r.slots[r.tail%ringSlots]
	ready := r.tail>>ringBits<<1 | 1
	if s.state.Load() != ready {
		return false
	}
	use(&s.record)
	s.state.Store(ready + 1)
	r.tail++
	return true
}

// fill copies the record and its texts, which belong to the request. A user or SKU that is too long is left out: it is
// why the request was rejected. The path is cut at the end of s.texts.
func (s *slot) fill(r *metrics.AccessRecord) {
	s.record = *r
	texts := s.texts[:0]
	texts, s.record.User = copyText(texts, r.User, maxUser)
	texts, s.record.ID = copyText(texts, r.ID, maxText)
	texts, s.record.SKU = copyText(texts, r.SKU, maxText)
	texts, s.record.Method = copyText(texts, r.Method, maxMethod)
	_, s.record.Path = copyText(texts, r.Path[:min(len(r.Path), cap(texts)-len(texts))], textSize)
}

// copyText appends text to texts and returns the copy, or nil for a text of more than limit bytes.
func copyText(texts, text []byte, limit int) (all, copied []byte) {
	if len(text) > limit {
		return texts, nil
	}
	start := len(texts)
	texts = append(texts, text...)
	return texts, texts[start:]
}
