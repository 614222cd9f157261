// Package slowbody shares out the memory of request bodies. Where it is in use, the slowest body makes room for a small
// one: clients that send their bodies slowly must not keep out those that send them at once.
//
// It promises that bodies hold no more than the memory has. It reads no body, and rejects no request.
package slowbody

import (
	"container/list"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"sluice/limiter"
)

// Bodies are those that are being read, the oldest first. It is safe for concurrent use.
type Bodies struct {
	After time.Duration // no body is slow before

	mu  sync.Mutex
	all list.List // of *Body
}

// Body is one of them. Its zero value is one that holds nothing. But for Came, its methods are for its reader alone.
type Body struct {
	Reserved int64        // bytes that it may have
	Came     atomic.Int64 // bytes
	Patient  bool         // its client may take its time: it gets no memory while less than half of it is free

	// The lock of Bodies protects these.
	at     *list.Element // nil = it is not being read
	began  time.Time
	memory limiter.BodyMemory
	held   int64 // bytes of memory; less than Reserved where it was cut
	cut    bool
	reader Reader
}

// Reader is the connection that a body comes from.
type Reader interface {
	// EndRead ends a read that waits, and those after it.
	EndRead()
}

const (
	slowLook = 16 // so many of the oldest are compared
	slowMost = 64 // so many make room for one other at most
)

// The errors of Grow.
var (
	ErrNoMemory = errors.New("body_memory is in use")
	ErrCut      = errors.New("body is slow, and body_memory is in use") // another one has got its memory
)

// Grow reserves what b needs to grow to size bytes of memory. The slowest ones make room for a small one.
func (s *Bodies) Grow(b *Body, memory limiter.BodyMemory, from Reader, size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.at == nil && !b.cut {
		b.memory, b.reader, b.began, b.at = memory, from, time.Now(), s.all.PushBack(b)
	}
	for range slowMost {
		switch {
		case b.cut:
			return ErrCut
		case b.grow(size):
			b.held, b.Reserved = size, size
			return nil
		case size > limiter.SmallBody, !s.cutSlowest(b, time.Now()):
			return ErrNoMemory
		}
	}
	return ErrNoMemory
}

// grow reserves memory for size bytes, if there is so much.
func (b *Body) grow(size int64) bool {
	if b.Patient {
		return b.memory.GrowSlow(b.held, size)
	}
	return b.memory.Grow(b.held, size)
}

// End says that b is not read any more: it keeps its memory. The error is ErrCut where another one has got it.
func (s *Bodies) End(b *Body) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.at != nil {
		s.all.Remove(b.at)
		b.at = nil
	}
	if b.cut {
		return ErrCut
	}
	return nil
}

// Release gives back what b holds, and makes it the zero value. One that never grew needs no lock.
func (s *Bodies) Release(b *Body) {
	if b.Reserved > 0 || b.at != nil {
		_ = s.End(b)
		b.memory.Release(b.held)
	}
	b.Reserved, b.held, b.cut, b.reader, b.Patient = 0, 0, false, nil, false
	b.Came.Store(0)
}

// cutSlowest ends the slowest of the oldest bodies but b, and gives back its memory. mu is held.
func (s *Bodies) cutSlowest(b *Body, now time.Time) bool {
	var slowest *Body
	lowest := 0.0 // bytes a second
	at := s.all.Front()
	for range slowLook {
		if at == nil {
			break
		}
		other := at.Value.(*Body)
		age := now.Sub(other.began)
		if age < s.After {
			break
		}
		if rate := float64(other.Came.Load()) / age.Seconds(); other != b && (slowest == nil || rate < lowest) {
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
	slowest.reader.EndRead()
	return true
}
