package upstream

import (
	"bytes"
	"io"
	"slices"
	"sync/atomic"
	"time"
)

// The answer to a gated request is taken off the shop's hands as fast as the shop gives it, whoever reads it and however
// slowly: what the shop has finished holds no place there. It waits in memory, within these bounds; past them, the answer
// is handed on as it comes, and lasts as long as its client reads.
const (
	mostStored = 1 << 20  // bytes of one answer
	storeRoom  = 64 << 20 // bytes of all that one Pool holds
	storeStep  = 64 << 10 // bytes that are asked for at once
)

// room is what is left of the memory for answers.
type room struct{ left atomic.Int64 }

func newRoom(bytes int64) *room {
	r := &room{}
	r.left.Store(bytes)
	return r
}

func (r *room) take(n int64) bool {
	if r.left.Add(-n) >= 0 {
		return true
	}
	r.left.Add(n)
	return false
}

func (r *room) giveBack(n int64) { r.left.Add(n) }

// store reads ahead until a time, where it is not zero, and reports whether that is the whole answer, which then lies in
// s.rest. An error is the shop's.
func (s *stream) store(until time.Time) (whole bool, err error) {
	for int64(len(s.rest)) < mostStored && (until.IsZero() || time.Now().Before(until)) {
		if n := int64(len(s.rest)) + inboxKept; n > s.held {
			if !s.target.room.take(storeStep) {
				return false, nil
			}
			s.held += storeStep
			s.rest = slices.Grow(s.rest, int(s.held)-len(s.rest))
		}
		p, err := s.body.next()
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		s.rest = append(s.rest, p...)
	}
	return false, nil
}

// storable reports an answer, by its head as it is kept, that nobody wants to see before its end. One that is known to be
// too long is not worth storing in part.
func storable(kept []byte, b *body) bool {
	if b.framing == counted && b.left > mostStored {
		return false
	}
	_, fields, _ := bytes.Cut(kept, []byte(crlf))
	for {
		name, value, rest, ok := cutField(fields)
		switch {
		case !ok:
			return true
		case is(name, "content-type") && len(value) >= len(eventStream) && is(value[:len(eventStream)], eventStream):
			return false
		case is(name, "x-accel-buffering") && is(value, "no"): // by which a shop tells nginx the same
			return false
		}
		fields = rest
	}
}

const eventStream = "text/event-stream"

// stored is a whole answer in memory, which no connection waits for.
type stored struct {
	rest []byte
	held int64
	room *room
}

// Read implements io.Reader.
func (s *stored) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Whole is the answer, until Close.
func (s *stored) Whole() []byte { return s.rest }

// Close gives the memory back.
func (s *stored) Close() error {
	s.room.giveBack(s.held)
	s.rest, s.held = nil, 0
	return nil
}
