//go:build linux && !noeventloop

// Package loopshim gives today's event loops the names of the next version. It goes when that lands.
package loopshim

import (
	"errors"
	"net"
	"time"

	"sluice/proxy/http1/eventloop"
)

// Options of Open.
type Options struct {
	Loops  int
	Serve  func(*Conn)
	Expire func(*Conn)
}

// Group is a set of loops.
type Group struct{ loops *eventloop.Loops }

// Conn is a connection of a loop.
type Conn struct {
	*eventloop.Socket
	Owner any
}

// Open starts the loops.
func Open(o Options) (*Group, error) {
	loops, err := eventloop.Open(eventloop.Options{
		Loops:  o.Loops,
		Serve:  func(k *eventloop.Socket) { o.Serve(k.Owner.(*Conn)) },
		Expire: func(k *eventloop.Socket) { go o.Expire(k.Owner.(*Conn)) },
	})
	return &Group{loops}, err
}

// Close ends the loops.
func (g *Group) Close() { g.loops.Close() }

// Adopt fails.
func (g *Group) Adopt(*net.TCPConn) (*Conn, error) { return nil, errors.ErrUnsupported }

// Listen replaces ln.
func (g *Group) Listen(ln *net.TCPListener) (net.Listener, error) {
	l, err := g.loops.Listen(ln)
	return listener{l}, err
}

type listener struct{ *eventloop.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	k := nc.(*eventloop.Socket)
	c := &Conn{Socket: k}
	k.Owner = c
	return c, nil
}

// Wait is Rest.
func (c *Conn) Wait(d time.Duration) (bool, error) { return c.Rest(d) }

// Expedite is Hurry.
func (c *Conn) Expedite(d time.Duration) { c.Hurry(d) }

// TryRead is Take.
func (c *Conn) TryRead(p []byte) (int, error) { return c.Take(p) }
