package proxy

import (
	"container/list"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"sluice/limiter"
	"sluice/proxy/server"
)

// slowBodies shares out the memory of request bodies that are being read, the oldest first. Where it is in use, the
// slowest makes room for a small one: clients that send their bodies slowly must not keep out those that send them at
// once. It reads no body, and is safe for concurrent use.
type slowBodies struct {
	after time.Duration // no body is slow before

	mu  sync.Mutex
	all list.List // of *slowBody
}

// slowBody is one of them. Its zero value is one that holds nothing. But for came, it is for its reader alone.
type slowBody struct {
	reserved int64        // bytes that it may have
	came     atomic.Int64 // bytes
	patient  bool         // its client may take its time: it gets no memory while less than half of it is free

	// The lock of slowBodies protects these.
	at     *list.Element // nil = it is not being read
	began  time.Time
	memory limiter.BodyMemory
	held   int64 // bytes of memory; less than reserved where it was cut
	cut    bool
	conn   *server.Conn
}

const (
	slowLook = 16 // so many of the oldest are compared
	slowMost = 64 // so many make room for one other at most
)

// The errors of reserve.
var (
	errNoMemory = errors.New("body_memory is in use")
	errCut      = errors.New("body is slow, and body_memory is in use") // another one has got its memory
)

// reserve reserves what b needs to grow to size bytes of memory. The slowest ones make room for a small one.
func (s *slowBodies) reserve(b *slowBody, memory limiter.BodyMemory, from *server.Conn, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.at == nil && !b.cut {
		b.memory, b.conn, b.began, b.at = memory, from, time.Now(), s.all.PushBack(b)
	}
	for range slowMost {
		switch {
		case b.cut:
			return errCut
		case b.grow(size):
			b.held, b.reserved = size, size
			return nil
		case size > limiter.SmallBody, !s.cutSlowest(b, time.Now()):
			return errNoMemory
		}
	}
	return errNoMemory
}

// grow reserves memory for size bytes, if there is so much.
func (b *slowBody) grow(size int64) bool {
	if b.patient {
		return b.memory.GrowSlow(b.held, size)
	}
	return b.memory.Grow(b.held, size)
}

// end says that b is not read any more: it keeps its memory. The error is errCut where another one has got it.
func (s *slowBodies) end(b *slowBody) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.at != nil {
		s.all.Remove(b.at)
		b.at = nil
	}
	if b.cut {
		return errCut
	}
	return nil
}

// release gives back what b holds, and makes it the zero value. One that never grew needs no lock.
func (s *slowBodies) release(b *slowBody) {
	if b.reserved > 0 || b.at != nil {
		_ = s.end(b)
		b.memory.Release(b.held)
		b.came.Store(0)
	}
	b.reserved, b.held, b.cut, b.conn, b.patient = 0, 0, false, nil, false
}

// cutSlowest ends the slowest of the oldest bodies but b, and gives back its memory. mu is held.
func (s *slowBodies) cutSlowest(b *slowBody, now time.Time) bool {
	var slowest *slowBody
	lowest := 0.0 // bytes a second
	at := s.all.Front()
	for range slowLook {
		if at == nil {
			break
		}
		other := at.Value.(*slowBody)
		age := now.Sub(other.began)
		if age < s.after {
			break
		}
		if rate := float64(other.came.Load()) / age.Seconds(); other != b && (slowest == nil || rate < lowest) {
			slowest, lowest = other, rate
		}
		at = at.Next()
	}
	if slowest == nil {
		return false
	}
	s.all.Remove(slowest.at)
	slowest.at, slowest.cut = nil, true
	slowest.memory.Release(slowest.held)
	slowest.held = 0
	slowest.conn.EndRead()
	return true
}
