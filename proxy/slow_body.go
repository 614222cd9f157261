package proxy

import (
	"container/list"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"sluice/limiter"
)

// slowBodies are the bodies that are being read into body_memory, the oldest first. Where the memory is in use, the
// slowest of them makes room: clients that send their bodies slowly must not keep out those that send them at once. It
// is safe for concurrent use.
type slowBodies struct {
	after time.Duration // no body is slow before

	mu  sync.Mutex
	all list.List // of *Request
}

// slowBody is the place of a request among them. The lock of slowBodies protects it and heldBody, but for came.
type slowBody struct {
	at    *list.Element // nil = the body is not being read
	began time.Time
	came  atomic.Int64 // bytes
	cut   bool
}

const (
	slowAfter = 500 * time.Millisecond
	slowLook  = 16 // so many of the oldest are compared
	slowMost  = 64 // so many make room for one other at most
)

var errCutForOthers = errors.New("body is slow, and body_memory is in use")

// begin adds the body of r. mu is held.
func (s *slowBodies) begin(r *Request) {
	if r.slow.at == nil {
		r.slow.began, r.slow.at = time.Now(), s.all.PushBack(r)
	}
}

// end takes the body of r out. The error is errCutForOthers where it was cut.
func (s *slowBodies) end(r *Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.slow.at != nil {
		s.all.Remove(r.slow.at)
		r.slow.at = nil
	}
	if r.slow.cut {
		return errCutForOthers
	}
	return nil
}

// grow reserves what the body of r needs to grow to size bytes. The slowest ones make room for a small one. The error is
// errCutForOthers where the body itself was cut.
func (s *slowBodies) grow(r *Request, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(r)
	for range slowMost {
		switch {
		case r.slow.cut:
			return errCutForOthers
		case r.growBody(size):
			r.heldBody, r.reservedBody = size, size
			return nil
		case size > limiter.SmallBody, !s.cutSlowest(r, time.Now()):
			return errNoBodyMemory
		}
	}
	return errNoBodyMemory
}

// cutSlowest ends the slowest of the oldest bodies but that of r, and gives back its memory. mu is held.
func (s *slowBodies) cutSlowest(r *Request, now time.Time) bool {
	var slowest *Request
	lowest := 0.0 // bytes a second
	at := s.all.Front()
	for range slowLook {
		if at == nil {
			break
		}
		other := at.Value.(*Request)
		age := now.Sub(other.slow.began)
		if age < s.after {
			break
		}
		if rate := float64(other.slow.came.Load()) / age.Seconds(); other != r && (slowest == nil || rate < lowest) {
			slowest, lowest = other, rate
		}
		at = at.Next()
	}
	if slowest == nil {
		return false
	}
	s.all.Remove(slowest.slow.at)
	slowest.slow.at, slowest.slow.cut = nil, true
	slowest.proxy.bodies.Release(slowest.heldBody)
	slowest.heldBody = 0
	slowest.conn.EndRead()
	return true
}
