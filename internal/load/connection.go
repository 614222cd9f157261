package load

import (
	"bufio"
	"context"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// connection is one keep-alive connection of the crowd, which many shoppers use in turn. It never sends anything twice.
type connection struct {
	front string
	conn  net.Conn // nil = closed
	in    *bufio.Reader
	out   []byte
	resp  fasthttp.Response
	stop  func() bool
}

const (
	dialTimeout   = 5 * time.Second
	maxAnswerSize = 64 << 10 // bytes

	// AnswerTimeout bounds the wait for one answer.
	AnswerTimeout = 30 * time.Second
)

func (l *connection) close() {
	if l.conn != nil {
		l.stop()
		_ = l.conn.Close()
		l.conn = nil
	}
}

func (l *connection) dial(ctx context.Context) bool {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", l.front)
	if err != nil {
		return false
	}
	l.conn = conn
	if l.in == nil {
		l.in = bufio.NewReaderSize(conn, 4<<10)
	}
	l.in.Reset(conn)
	l.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // long past: ends what waits
	return true
}

// exchange sends what is in out, and reads the answer.
func (l *connection) exchange(ctx context.Context) (a answer, ok bool) {
	if l.conn == nil && !l.dial(ctx) {
		return a, false
	}
	_ = l.conn.SetDeadline(time.Now().Add(AnswerTimeout))
	if ctx.Err() != nil { // the deadline that ends it may have been overwritten
		return a, false
	}
	l.resp.Reset()
	if _, err := l.conn.Write(l.out); err != nil || l.resp.ReadLimitBody(l.in, maxAnswerSize) != nil {
		l.close()
		return a, false
	}
	a = readAnswer(&l.resp)
	if l.resp.ConnectionClose() || l.in.Buffered() > 0 {
		l.close()
	}
	return a, true
}
