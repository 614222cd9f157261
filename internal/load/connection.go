package load

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Connections are keep-alive connections. One crowd at a time may use them.
type Connections struct {
	all []*connection
}

// NewConnections returns n that are not open yet; dial opens the i-th. They are opened when they are needed, and again
// when they have broken.
func NewConnections(n int, dial func(ctx context.Context, i int) (net.Conn, error)) *Connections {
	c := &Connections{}
	for i := range n {
		c.all = append(c.all, &connection{open: func(ctx context.Context) (net.Conn, error) { return dial(ctx, i) }})
	}
	return c
}

// To opens connections to an address.
func To(address string) func(ctx context.Context, i int) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	return func(ctx context.Context, _ int) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
}

// Open opens all of them, some at a time.
func (c *Connections) Open(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	const atOnce = 64
	for from := range min(atOnce, len(c.all)) {
		all.Go(func() {
			for i := from; i < len(c.all) && ctx.Err() == nil; i += atOnce {
				if err := c.all[i].dial(ctx); err != nil {
					fail(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// Close closes all.
func (c *Connections) Close() {
	for _, l := range c.all {
		l.close()
	}
}

// connection is one keep-alive connection of a crowd, which many shoppers use in turn. It never sends anything twice.
type connection struct {
	*requester          // that uses it now
	conn       net.Conn // nil = closed
	open       func(context.Context) (net.Conn, error)
}

// requester is what one request at a time needs.
type requester struct {
	in   *bufio.Reader
	out  []byte
	resp fasthttp.Response
}

const (
	dialTimeout   = 5 * time.Second
	maxAnswerSize = 64 << 10 // bytes

	// AnswerTimeout bounds the wait for one answer.
	AnswerTimeout = 30 * time.Second
)

func (l *connection) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

func (l *connection) dial(ctx context.Context) (err error) {
	if l.conn == nil {
		l.conn, err = l.open(ctx)
	}
	return err
}

// exchange sends what is in out, and reads the answer.
func (l *connection) exchange(ctx context.Context) (a answer, ok bool) {
	if l.dial(ctx) != nil {
		return a, false
	}
	conn := l.conn
	_ = conn.SetDeadline(time.Now().Add(AnswerTimeout))
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })() // long past: ends what waits
	l.in.Reset(conn)
	l.resp.Reset()
	if _, err := conn.Write(l.out); err != nil || l.resp.ReadLimitBody(l.in, maxAnswerSize) != nil {
		l.close()
		return a, false
	}
	a = readAnswer(&l.resp)
	if l.resp.ConnectionClose() || l.in.Buffered() > 0 {
		l.close()
	}
	return a, true
}
