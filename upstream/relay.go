package upstream

import (
	"errors"
	"io"
	"sync"
	"time"

	"sluice/upstream/spool"
)

// takeOver is after which time without a read by its client a response is read ahead. A client that keeps up has the
// response read in its own goroutine, into the buffer that it is written from.
const takeOver = 10 * time.Millisecond

// errManyStreams ends a response that no room is left for, when too many others hold connections already.
var errManyStreams = errors.New("read response: no room to read ahead, and too many streams")

// stream is the body of a response that is handed on while it comes. It owns its connection until the body has ended:
// where the client is slow, the rest is read into the spool meanwhile. Each is used once, so that a Read after Close
// cannot reach into the next exchange.
//
// The client's goroutine reads and closes it. The goroutine that reads ahead ends with the body, or with Close.
type stream struct {
	body     body // belongs to the goroutine that reads from the upstream
	conn     *conn
	target   *target
	reusable bool
	held     int64  // bytes of the memory, for rest
	rest     []byte // read before the stream was handed on
	direct   bool   // never read ahead

	mu      sync.Mutex
	news    sync.Cond   // more is in ahead, or the body has ended
	ahead   *spool.Body // nil = nothing was ever read ahead
	timer   *time.Timer // starts to read ahead; nil = none was set
	reading bool        // the client's goroutine reads from the upstream
	pumping bool        // another goroutine does
	ended   bool        // the connection was given back
	err     error       // how it ended
	closed  bool
	onEnd   func(broken bool)
}

func newStream(b body, c *conn, t *target, reusable bool) *stream {
	s := &stream{body: b, conn: c, target: t, reusable: reusable}
	s.news.L = &s.mu
	return s
}

// OnEnd has f called once, when the upstream has sent all, has broken off, or the stream is closed. It must be set
// before the stream is handed on. A second f is called behind the first.
func (s *stream) OnEnd(f func(broken bool)) {
	if first := s.onEnd; first != nil {
		s.onEnd = func(broken bool) { first(broken); f(broken) }
		return
	}
	s.onEnd = f
}

// Read hands on what has come. It never waits to fill p.
func (s *stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, io.ErrClosedPipe
	case len(p) == 0:
		return 0, nil
	case len(s.rest) > 0:
		n := copy(p, s.rest)
		s.rest = s.rest[n:]
		s.readAheadLater()
		return n, nil
	}
	for {
		if s.ahead != nil {
			if n, err := s.ahead.Read(p); n > 0 || err != nil {
				return n, err
			}
		}
		switch {
		case s.ended:
			return 0, s.err
		case !s.pumping:
			return s.readNow(p)
		}
		s.news.Wait()
	}
}

// readNow reads from the upstream. mu is held, but not while it waits.
func (s *stream) readNow(p []byte) (int, error) {
	s.reading = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	n, err := s.body.Read(p)
	s.mu.Lock()
	s.reading = false
	if err != nil || s.body.done {
		s.end(err)
		return n, err
	}
	s.readAheadLater()
	return n, nil
}

// readAheadLater starts to read ahead when the client takes too long to come back. mu is held.
func (s *stream) readAheadLater() {
	switch {
	case s.direct || s.ended || s.pumping:
	case s.timer == nil:
		s.timer = time.AfterFunc(takeOver, s.pump)
	default:
		s.timer.Reset(takeOver)
	}
}

// pump reads ahead until the body ends, the stream is closed, or there is no room. Then the client's goroutine reads
// on, after what was read ahead: such a connection is counted as held.
func (s *stream) pump() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading || s.pumping || s.ended || s.closed {
		return
	}
	s.pumping = true
	s.conn.bind(nil)
	if s.ahead == nil {
		s.ahead = s.target.store.Body()
	}
	for s.pumping {
		s.mu.Unlock()
		_, err := s.ahead.Fill(&s.body)
		s.mu.Lock()
		switch {
		case err == spool.ErrFull && !s.closed:
			if s.pumping = false; !s.target.holdConn(s.conn) {
				s.end(errManyStreams)
			}
		case err != nil || s.body.done || s.closed:
			s.end(err)
		}
		s.news.Signal()
	}
}

// end gives the connection back, and keeps err for the reader; nil = the body is whole. mu is held.
func (s *stream) end(err error) {
	if s.pumping = false; s.ended {
		return
	}
	if s.ended, s.err = true, err; err == nil {
		s.err = io.EOF
	}
	broken := s.err != io.EOF && !s.closed
	if broken && err != errManyStreams {
		s.target.logCut(err)
	}
	s.target.endStream(s.conn, s.disposition())
	if s.onEnd != nil {
		s.onEnd(broken)
	}
}

// disposition is what becomes of the connection when nothing more is read of the response.
func (s *stream) disposition() disposition {
	if s.reusable && s.body.done && s.body.in.buffered() == 0 {
		return mayReuse
	}
	return mustClose
}

// Close ends the stream. A connection of which the body was not read to its very end is closed: the rest would be read
// as the next response.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.ahead != nil {
		s.ahead.Close()
	}
	if s.pumping {
		_ = s.conn.Close() // the goroutine that reads ahead wakes up, and gives it back
	} else {
		s.end(io.ErrClosedPipe)
	}
	s.target.store.Release(s.held)
	s.held, s.rest = 0, nil
	return nil
}

// The part of a target's connections for pages, one in so many, that may be held: by streams that never end, by
// tunnels, by uploads, and by responses for which no room is left. The others are for pages that come and go.
const heldShare = 2

// maxHeld is how many connections may be held.
func (t *target) maxHeld() int { return max(1, t.maxInUse(false)/heldShare) }

// holdConn counts c, which is in use, as held for as long as a client likes; false = there are too many. Orders are
// limited elsewhere.
func (t *target) holdConn(c *conn) bool {
	if c.order || c.held {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held >= t.maxHeld() {
		return false
	}
	t.held++
	c.held = true
	return true
}
