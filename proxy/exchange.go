package proxy

import (
	"bufio"
	"io"
	"net"

	"github.com/valyala/fasthttp"

	"sluice/proxy/http1"
)

// exchange reads requests and writes answers, one after the other.
type exchange struct {
	conn  *Conn
	asked http1.Request
	resp  fasthttp.Response // the shop's answer, or a kept one
	reply reply             // the gate's own
	text  []byte            // room for it, as it is sent
	out   *bufio.Writer
}

func newExchange() *exchange {
	return &exchange{out: bufio.NewWriter(nil)}
}

// exchange serves c for as long as requests come, and closes it then; or parking is set, or away.
func (s *Server) exchange(c *Conn) {
	x := s.exchanges.Get().(*exchange)
	x.conn = c
	x.out.Reset(c)
	s.talk(x, true)
}

// talk goes on with x, if another request may follow.
func (s *Server) talk(x *exchange, more bool) {
	c := x.conn
	for more {
		more = x.turn(s)
	}
	if c.away != nil {
		c.talking = x
		return
	}
	x.conn = nil
	s.exchanges.Put(x)
	_ = c.Close()
}

// turn takes one request to the end of its answer, and reports whether another may follow on the connection; or away is set.
func (x *exchange) turn(s *Server) bool {
	s.silent.CopyTo(&x.resp.Header)
	if err := x.conn.readHead(&x.asked); err != nil {
		defer x.clear()
		if why, broken := err.(http1.Violation); broken {
			s.broken(x, why)
			_ = x.answer(true)
		}
		return false
	}
	if s.handle(x); x.conn.away != nil {
		return false
	}
	return x.conclude()
}

// conclude answers a request that was handled.
func (x *exchange) conclude() bool {
	defer x.clear()
	c := x.conn
	last := x.asked.Close || x.reply.last || x.resp.ConnectionClose()
	if last && (!x.asked.Close || c.reader.Pipelined() || len(c.came) > 0) {
		c.unread = true // a next request that will not be answered: it has come, or is on its way
	}
	afterwards := c.afterwards
	c.afterwards = nil
	if afterwards == nil || !afterwards.instead {
		if x.answer(last) != nil {
			return false
		}
	}
	if afterwards != nil {
		x.asked.Forget() // it may last
		c.unlimited()
		afterwards.do()
		return false
	}
	return !last && !c.quiet()
}

// quiet reports that nothing of a next request has come to a connection that can rest in a loop: it does so now.
func (c *Conn) quiet() bool {
	c.parking = c.looped != nil && len(c.came) == 0 && !c.forgone && c.reader.BodyRead() && !c.reader.Pipelined()
	return c.parking
}

// answer writes it whole.
func (x *exchange) answer(last bool) error {
	connection := ""
	switch {
	case last:
		connection = "close"
	case x.asked.HTTP10:
		connection = "keep-alive" // of its own accord HTTP/1.0 closes
	}
	if x.reply.status != 0 {
		x.text = x.reply.appendTo(x.text[:0], connection, x.toHead())
		_, err := x.conn.Write(x.text)
		return err
	}
	resp := &x.resp
	if connection != "" {
		resp.Header.Set("Connection", connection)
	}
	resp.SkipBody = resp.SkipBody || x.toHead()
	if err := resp.Write(x.out); err != nil {
		return err
	}
	return x.out.Flush()
}

// toHead reports a request for the head of an answer alone.
func (x *exchange) toHead() bool { return string(x.asked.Method()) == "HEAD" }

func (x *exchange) clear() {
	x.asked.Forget()
	x.reply.clear()
	if cap(x.text) > keptReply {
		x.text = nil
	}
	x.resp.Reset()
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
