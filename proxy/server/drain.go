package server

import (
	"context"
	"time"
)

// backlog is how long connections that the kernel has already accepted are still served once draining began. grace is
// how long an idle connection may still send a request.
const (
	backlog = 100 * time.Millisecond
	grace   = 250 * time.Millisecond
)

// AnnounceShutdown makes every answer from now on the last of its connection, so that clients move elsewhere.
func (s *Server) AnnounceShutdown() { s.announced.Store(true) }

// Drain stops listening and waits until the requests under way have their answers, or until ctx ends; then it closes
// the connections that are left, and returns how many they were. It also closes the event loops, those of Adopt
// included.
func (s *Server) Drain(ctx context.Context) (cut int) {
	defer s.closeLoops()
	s.AnnounceShutdown()
	s.stopListening()
	s.accepting.Wait()
	s.mu.Lock()
	s.closing.Store(true)
	for c := range s.open {
		c.expedite()
	}
	if len(s.open) == 0 {
		s.signalEmpty()
	}
	s.mu.Unlock()
	select {
	case <-s.emptied:
		return 0
	case <-ctx.Done():
	}
	s.mu.Lock()
	left := make([]*Conn, 0, len(s.open))
	for c := range s.open {
		left = append(left, c)
	}
	s.mu.Unlock()
	for _, c := range left {
		c.Abort()
	}
	return len(left)
}

// stopListening lets Accept return what waits in the kernel's queue before the listener is closed: a closed listener
// resets such connections.
func (s *Server) stopListening() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, ln := range s.listeners {
		if d, ok := ln.(interface{ SetDeadline(time.Time) error }); ok {
			_ = d.SetDeadline(time.Now().Add(backlog))
		}
	}
}

// track registers a connection that Drain waits for.
func (s *Server) track(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
}

// untrack removes a connection that has ended.
func (s *Server) untrack(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	if s.closing.Load() && len(s.open) == 0 {
		s.signalEmpty()
	}
}

// signalEmpty tells Drain that no connection is open. s.mu is held.
func (s *Server) signalEmpty() {
	select {
	case <-s.emptied:
	default:
		close(s.emptied)
	}
}
