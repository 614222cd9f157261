package proxy

import (
	"net"

	"sluice/proxy/http1/eventloop"
)

// A plain TCP connection rests in a loop, with all others, and what comes is served by whoever leads that loop: a refusal
// needs no other goroutine. Who has to wait for the shop, for Redis or for the client steps aside first.

// looped is a listener that takes connections into loops, in the place of ln; ln itself where that cannot be.
func (s *Server) looped(ln net.Listener) net.Listener {
	tcp, plain := ln.(*net.TCPListener)
	if !plain || s.TLS != nil || s.ProxyProtocol {
		return ln
	}
	loops := s.beginLoops()
	if loops == nil {
		return ln
	}
	if l, err := loops.Listen(tcp); err == nil {
		return l
	}
	return ln
}

// beginLoops starts them, once; nil = there are none on this system, or none any more.
func (s *Server) beginLoops() *eventloop.Loops {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loops == nil && !s.stopped {
		s.loops, _ = eventloop.Open(eventloop.Options{
			Serve: func(k *eventloop.Socket) {
				if c := k.Owner.(*Conn); k == c.looped {
					s.woken(c)
				} else {
					s.landed(c, k)
				}
			},
			Expire: func(k *eventloop.Socket) {
				if c := k.Owner.(*Conn); k == c.looped {
					go c.leaveRest()
				} else {
					go s.overdue(c, k)
				}
			},
			Lead: func(t eventloop.Turn) { s.crew.do(job{turn: t}) },
		})
	}
	return s.loops
}

// endLoops ends them, when nobody is left who could be served.
func (s *Server) endLoops() {
	s.mu.Lock()
	loops := s.loops
	s.mu.Unlock()
	if loops != nil {
		loops.Close()
	}
}

// work does a job of the crew.
func (s *Server) work(j job) {
	if j.conn != nil {
		s.serve(j.conn)
		return
	}
	j.turn.Lead()
}

// rest lets the connection wait in its loop, for its first request as long as a head may take. From true on it is the loop's.
func (c *Conn) rest() bool {
	s, patience := c.server, c.server.IdleTimeout
	if !c.served {
		patience = s.ReadHeaderTimeout
	}
	c.parking = false
	c.idle.Store(true)
	rests, err := c.looped.Rest(patience)
	if err != nil {
		c.leaveRest()
		return true
	}
	if rests && s.closing.Load() { // Drain may have looked a moment before
		c.looped.Hurry(grace)
	}
	return rests
}

// woken serves what ended the rest of c, in the goroutine that leads its loop, and lets it rest again.
func (s *Server) woken(c *Conn) {
	c.idle.Store(false)
	if c.fetch() {
		s.exchange(c)
		s.wait(c)
	}
}

// wait lets c rest, for a next request or for the shop's answer to this one, and serves what has come meanwhile.
func (s *Server) wait(c *Conn) {
	for {
		switch {
		case c.away != nil:
			if c.away.flight.Rest(c) {
				return
			}
			s.land(c)
		case !c.parking || c.rest():
			return
		default:
			c.idle.Store(false)
			if !c.fetch() {
				return
			}
			s.exchange(c)
		}
	}
}

// landed serves what has come from the shop, whose connection is k, in the goroutine that leads the loop of k.
func (s *Server) landed(c *Conn, k *eventloop.Socket) {
	c.looped.Follow(k)
	s.land(c)
	s.wait(c)
}

// overdue waits for a shop that takes its time in the goroutine that calls it.
func (s *Server) overdue(c *Conn, k *eventloop.Socket) {
	c.away.flight.Hurry()
	s.landed(c, k)
}

// land goes on where the answer to c's request was waited for.
func (s *Server) land(c *Conn) {
	r, p := c.away, c.away.proxy
	if p.land(r); c.away != nil {
		return
	}
	x := c.talking
	c.talking = nil
	s.handled(x, p)
	s.talk(x, x.conclude())
}

// fetch takes what has come, into room that is borrowed for it. It reports false when there is nothing to be served: the connection
// rests again, or has ended.
func (c *Conn) fetch() bool {
	for {
		room := c.server.rooms.Get().(*[]byte)
		n, err := c.looped.Take(*room)
		if n > 0 {
			c.came, c.room = (*room)[:n], room
			return true
		}
		c.server.rooms.Put(room)
		if err != nil {
			c.leaveRest()
			return false
		}
		if c.rest() {
			return false
		}
	}
}

// leaveRest ends a connection of which no further request has come.
func (c *Conn) leaveRest() {
	c.idle.Store(false)
	_ = c.Close()
}

// StepAside has somebody else lead the loop of c, because what follows may wait.
func (c *Conn) StepAside() {
	if c.looped != nil {
		c.looped.StepAside()
	}
}
