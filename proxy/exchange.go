package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// exchange reads requests and writes answers, one after the other. The HTTP library's own server does the same, for
// connections that keep a goroutine: it books each one in a table that all processors share.
type exchange struct {
	ctx fasthttp.RequestCtx
	uri fasthttp.URI
	in  *bufio.Reader
	out *bufio.Writer

	pool *sync.Pool // where it comes from
	used bool       // a request came before
	last bool       // none may follow the one under way
}

// exchanges are a pool of them, with room for heads of so many bytes.
func exchanges(head int) *sync.Pool {
	pool := new(sync.Pool)
	pool.New = func() any {
		return &exchange{in: bufio.NewReaderSize(nil, head), out: bufio.NewWriter(nil), pool: pool}
	}
	return pool
}

// exchange serves c for as long as requests come, and closes it then; or parking is set, or away.
func (s *Server) exchange(c *Conn) {
	x := s.usual.Get().(*exchange)
	x.open(c)
	s.talk(x, c, true)
}

// talk goes on with x, if another request may follow.
func (s *Server) talk(x *exchange, c *Conn, more bool) {
	for more {
		more = x.turn(s, c)
	}
	if c.away != nil {
		c.talking = x
		return
	}
	x.pool.Put(x)
	if c.moving {
		c.moving = false
		x = s.roomy.Get().(*exchange)
		x.open(c)
		s.talk(x, c, true)
		return
	}
	_ = c.Close()
}

func (x *exchange) open(c *Conn) {
	x.ctx.Init2(c, quietLogger{}, false)
	x.in.Reset(c)
	x.out.Reset(c)
	x.used = false
}

// turn takes one request to the end of its answer, and reports whether another may follow on the connection; or away is set.
func (x *exchange) turn(s *Server, c *Conn) bool {
	ctx, first := &x.ctx, !x.used
	x.used = true
	s.silent.CopyTo(&ctx.Response.Header)
	if err := x.read(); err != nil {
		defer x.clear()
		if err = c.cause(err, first); err != nil {
			s.broken(ctx, err)
			ctx.SetConnectionClose()
			_ = x.answer()
		}
		return false
	}
	x.last = ctx.Request.Header.ConnectionClose()
	if s.handle(ctx); c.away != nil {
		return false
	}
	return x.conclude(c)
}

// conclude answers a request that was handled.
func (x *exchange) conclude(c *Conn) bool {
	defer x.clear()
	ctx, last := &x.ctx, x.last || x.ctx.Response.ConnectionClose()
	if last {
		ctx.SetConnectionClose()
	} else if !ctx.Request.Header.IsHTTP11() {
		ctx.Response.Header.Set("Connection", "keep-alive") // of its own accord HTTP/1.0 closes
	}
	afterwards := c.afterwards
	c.afterwards = nil
	if afterwards == nil || !afterwards.instead {
		if x.answer() != nil {
			return false
		}
	}
	if afterwards != nil {
		_ = c.SetDeadline(time.Time{})
		afterwards.do()
		return false
	}
	return !last && !c.quiet()
}

// cause is why no request could be read; nil = the connection has ended between two requests, or rests.
func (c *Conn) cause(err error, first bool) error {
	var nothing fasthttp.ErrNothingRead
	switch {
	case err == io.EOF:
		return nil
	case !errors.As(err, &nothing):
		return err
	case !first || c.fault == io.EOF:
		return nil
	}
	return c.fault
}

// quiet reports that nothing of a next request has come to a connection that can rest in a loop: it does so now.
func (c *Conn) quiet() bool {
	c.parking = c.looped != nil && len(c.came) == 0 && len(c.begunHead) == 0 && !c.forgone && c.reader.BodyRead() && !c.reader.Pipelined()
	return c.parking
}

// read takes a head. Its body is left to Conn.ReadBody.
func (x *exchange) read() error {
	h := &x.ctx.Request.Header
	if err := h.Read(x.in); err != nil {
		return err
	}
	headOnly(h)
	return x.uri.Parse(h.Host(), h.RequestURI())
}

// answer writes it whole.
func (x *exchange) answer() error {
	resp := &x.ctx.Response
	resp.SkipBody = resp.SkipBody || x.ctx.IsHead()
	if err := resp.Write(x.out); err != nil {
		return err
	}
	return x.out.Flush()
}

func (x *exchange) clear() {
	x.ctx.Request.Reset()
	x.ctx.Response.Reset()
}

// afterwards is what the connection is used for when HTTP is done with it.
type afterwards struct {
	do      func()
	instead bool // of an answer, which it writes itself
}

// silentHead is the head of an answer to which the HTTP library adds no Date: only its own server can ask for one.
func silentHead() *fasthttp.ResponseHeader {
	h := new(fasthttp.ResponseHeader)
	s := fasthttp.Server{NoDefaultDate: true, NoDefaultContentType: true, NoDefaultServerHeader: true, Logger: quietLogger{},
		Handler: func(ctx *fasthttp.RequestCtx) { ctx.Response.Header.CopyTo(h) }}
	shop, client := net.Pipe()
	go func() {
		_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		_, _ = io.Copy(io.Discard, client)
		client.Close()
	}()
	_ = s.ServeConn(shop)
	return h
}
