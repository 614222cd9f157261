package accesslog

import "sluice/proxy/metrics"

const (
	maxSlots = 64 << 10 // about 1 KiB each
	textSize = 640      // bytes of a record's texts

	maxUser   = 256
	maxText   = 128 // of a request ID and of a SKU
	maxMethod = 16
)

// slotsFor is how many records so many processors fill at most between two reads of the writer.
func slotsFor(processors int) int { return min(processors*2048, maxSlots) }

// slots hold the records on their way to the writer, in fixed memory.
type slots struct{ free, filled chan *slot }

// slot holds one record with its texts.
type slot struct {
	record metrics.AccessRecord
	texts  [textSize]byte
}

func newSlots(n int) slots {
	s := slots{make(chan *slot, n), make(chan *slot, n)}
	all := make([]slot, n)
	for i := range all {
		s.free <- &all[i]
	}
	return s
}

// Log implements metrics.AccessLogger. It copies r, or counts it as dropped when the writer is behind.
func (l *Log) Log(r metrics.AccessRecord) {
	if !l.slots.push(&r) {
		l.dropped[full].Add(1)
	}
}

// push copies the record with its texts; false = no slot is free.
func (s *slots) push(r *metrics.AccessRecord) bool {
	select {
	case one := <-s.free:
		one.fill(r)
		s.filled <- one // has room for all
		return true
	default:
		return false
	}
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
