package server

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	acceptPause   = 5 * time.Millisecond // after an error of Accept that may end by itself
	acceptLogging = 10 * time.Second     // one line about them in that time
)

// full reports that clients hold all descriptors that they may hold.
func (s *Server) full() bool {
	if s.options.Load().MaxConns <= 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)+int(s.lingering.Load()) >= s.options.Load().MaxConns
}

// spare is a descriptor that a listener keeps, so that it can still accept a connection and close it when the process
// has no other one left. A connection that is not accepted waits in the kernel's queue, and its client without an end.
type spare struct {
	file   *os.File // nil = not held
	log    *slog.Logger
	warned time.Time
}

func newSpare(log *slog.Logger) *spare {
	p := &spare{log: log}
	p.reserve()
	return p
}

// reserve reports whether the descriptor is held: whether there is one left beside it.
func (p *spare) reserve() bool {
	if p.file == nil {
		p.file, _ = os.Open(os.DevNull)
	}
	return p.file != nil
}

func (p *spare) release() {
	if p.file != nil {
		_ = p.file.Close()
		p.file = nil
	}
}

// accept accepts a connection, with the spare descriptor if there is no other one. It reports short when none has
// become free meanwhile: then the connection must be closed. The spare descriptor is given up only for a connection
// that is there already: another part of the process would take it while Accept waits.
func (p *spare) accept(ln net.Listener) (nc net.Conn, short bool, err error) {
	nc, err = ln.Accept()
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) || !pending(ln) {
		return nc, false, err
	}
	p.warn(err)
	p.release()
	nc, err = ln.Accept()
	held := p.reserve()
	return nc, err == nil && !held, err
}

// pending reports whether a connection waits to be accepted, and true where that cannot be known.
func pending(ln net.Listener) bool {
	l, ok := ln.(syscall.Conn)
	if !ok {
		return true
	}
	is := true
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { is = readable(fd) })
	}
	return is
}

func (p *spare) warn(err error) {
	if now := time.Now(); now.Sub(p.warned) > acceptLogging {
		p.warned = now
		p.log.Warn("cannot accept connections; trying again", "err", err)
	}
}

// reject rejects a connection that has the spare descriptor, closes it at once, and takes the descriptor back.
func (p *spare) reject(s *Server, nc net.Conn) {
	answer, _ := s.handler.OpenConn(newConn(s, nc, peerAddr(nc)), true)
	if s.options.Load().TLS != nil {
		answer = nil
	}
	closeWith(nc, answer)
	p.reserve()
}
