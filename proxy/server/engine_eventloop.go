//go:build linux && !noeventloop

package server

import (
	"net"

	"sluice/proxy/eventloop"
)

// newEventLoops opens the event loops of s; nil where the system lacks descriptors or memory for them.
func newEventLoops(s *Server) eventLoops {
	group, err := eventloop.Open(eventloop.Options{
		Serve:  func(k *eventloop.Conn) { s.serveReady(k.Owner.(*Conn)) },
		Expire: func(k *eventloop.Conn) { k.Owner.(*Conn).close() },
	})
	if err != nil {
		s.options.Load().Logger.Warn("cannot open event loops; each connection costs a goroutine", "err", err)
		return nil
	}
	return loopGroup{group}
}

// loopGroup wires package eventloop to a Server.
type loopGroup struct{ *eventloop.Group }

func (g loopGroup) listen(ln *net.TCPListener) (net.Listener, error) { return g.Listen(ln) }
func (g loopGroup) adopt(c *net.TCPConn) (net.Conn, error)           { return g.Adopt(c) }
func (g loopGroup) close()                                           { g.Close() }

func (g loopGroup) attach(nc net.Conn, c *Conn) eventConn {
	k, ok := nc.(*eventloop.Conn)
	if !ok {
		return nil
	}
	k.Owner = c
	return k
}
