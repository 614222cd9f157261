package proxy

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sluice/proxy/http1"
	"sluice/proxy/http1/eventloop"
)

// Pace is the rate of the requests on one connection.
type Pace interface {
	// Allow counts one request at t; when it is refused, wait tells how long until one is allowed.
	Allow(t time.Time) (wait time.Duration, ok bool)
}

// Conn is one client connection, with what lasts from one of its requests to the next. What is read from it was judged before:
// canonical requests, one at a time.
type Conn struct {
	net.Conn
	looped   *eventloop.Socket // that Conn is; nil = it is none, and waits in a goroutine of its own
	server   *Server
	reader   *http1.Reader
	peer     netip.Addr
	trusted  bool // what this peer says of others is believed, by the Proxy of this generation
	judgedBy uint32
	shared   bool // it carries many shoppers, or one who is not limited: limits of one connection or client do not apply
	counted  bool // the connection limits know it
	pace     Pace // nil = not limited
	shard    *shard

	until      deadlines
	idle       atomic.Bool   // waits for a next request, of which no byte has come
	headTimed  bool          // the time for a head that comes in pieces is running
	bodyTimed  bool          // the time for the body is running
	served     bool          // a request came before
	requests   int           // that came so far
	outside    atomic.Bool   // parked
	parking    bool          // see park
	parked     time.Duration // since when, as deadlines count
	away       *request      // that waits for its answer in a loop; nil = none does
	talking    *exchange     // that serves it
	slow       bool          // its last request came after a pause: the next is waited for outside
	came       []byte        // what ended the parking, as far as it was not handed on
	room       *[]byte       // that came is in; nil = in first
	first      [1]byte
	tunneled   atomic.Bool        // left HTTP; what arrives is not for the judge
	beside     io.Closer          // what lasts as long as the connection; nil = nothing
	violation  http1.Violation    // of a body
	afterwards *afterwards        // nil = nothing; see exchange.go
	raw        syscall.RawConn    // of the client; nil = nobody has asked for it yet
	wake       func(uintptr) bool // takes what ends the parking from the socket; nil = through Conn, a byte
	hasty      bool               // the answer under way holds a place inside the shop
	patience   time.Duration      // of the time that writing such an answer may take
	forgone    bool               // what is left of the last body is passed over before the next head
	unread     bool               // part of a request was left unread: closing at once would reset the answer away
	closed     sync.Once
}

// readHead takes the next request's head. What is left of a body that was given up is passed over first.
func (c *Conn) readHead(q *http1.Request) error {
	if c.forgone && !c.passOver() {
		return io.EOF
	}
	err := c.reader.ReadHead(q)
	c.headTimed, c.bodyTimed = false, false
	return err
}

// Read hands on what comes after HTTP, as it is.
func (c *Conn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// ReadBody hands on the content of the current request's body. See http1.Reader.
func (c *Conn) ReadBody(p []byte) (int, error) {
	n, err := c.reader.ReadBody(p)
	if v, broken := err.(http1.Violation); broken && c.violation != v {
		c.violation = v
		c.server.malformed[v.Kind].Add(1)
	}
	return n, err
}

// socket is the connection below the judge.
type socket struct{ *Conn }

// Read waits for bytes: for a next request as long as a connection may be idle, for the rest of its head or body only
// as long as that may take.
func (s socket) Read(p []byte) (int, error) {
	c := s.Conn
	switch {
	case len(c.came) > 0:
		return c.readCame(p), nil
	case c.tunneled.Load():
		return c.Conn.Read(p)
	case !c.reader.BodyRead():
		return c.readForBody(p)
	case c.reader.Pipelined():
		if !c.headTimed {
			c.headTimed = true
			c.readWithin(c.server.ReadHeaderTimeout)
		}
		return c.Conn.Read(p)
	}
	return c.readNext(p)
}

// readNext waits for the next request.
func (c *Conn) readNext(p []byte) (int, error) {
	c.headTimed, c.bodyTimed = false, false
	if c.looped != nil || c.slow && !c.server.closing.Load() {
		c.parking = true
		return 0, io.EOF
	}
	c.idle.Store(true)
	c.restWithin(parkAfter)
	if c.server.closing.Load() {
		c.hurry()
	}
	n, err := c.Conn.Read(p)
	c.idle.Store(false)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		c.parking = !c.server.closing.Load()
		err = io.EOF
	}
	return n, err
}

// readForBody waits for a body's bytes. Whoever asked whether to send them is told to only now, when somebody wants
// them (RFC 9110, section 10.1.1): a request that is refused never sends its body.
func (c *Conn) readForBody(p []byte) (int, error) {
	if !c.bodyTimed {
		c.bodyTimed = true
		c.readWithin(c.server.ReadTimeout)
		if c.reader.Head().Expect100 {
			if _, err := c.Write(goOn); err != nil {
				return 0, err
			}
		}
	}
	return c.Conn.Read(p)
}

var goOn = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// hurry gives an idle connection a last moment to send what may be on its way.
func (c *Conn) hurry() {
	switch {
	case c.looped != nil:
		c.looped.Hurry(grace)
	case c.idle.Load():
		_ = c.Conn.SetReadDeadline(time.Now().Add(grace))
	}
}

// Write allows each write its time, so that a long download is cut off only when the client has stopped to read.
func (c *Conn) Write(p []byte) (int, error) {
	if c.hasty {
		return c.writeInHaste(p)
	}
	if c.server.WriteTimeout > 0 {
		c.writeWithin(c.server.WriteTimeout)
	}
	return c.Conn.Write(p)
}

// deadline is the instant after d; none when d is 0.
func deadline(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

// begin starts a request: its body, and the head after it, have their own times, also when they came along before.
func (c *Conn) begin() {
	c.requests++
	c.served, c.headTimed, c.bodyTimed = true, false, false
	c.hasty = false
}

// allow asks the connection's own rate.
func (c *Conn) allow(t time.Time) (wait time.Duration, ok bool) {
	if c.pace == nil {
		return 0, true
	}
	return c.pace.Allow(t)
}

// Close implements net.Conn. A connection that is to be parked stays open.
func (c *Conn) Close() (err error) {
	if c.parking {
		return nil
	}
	c.closed.Do(func() {
		if c.beside != nil {
			_ = c.beside.Close()
		}
		if c.unread || c.forgone {
			linger(c.Conn)
		}
		err = c.Conn.Close()
		c.server.forget(c)
	})
	return err
}

// abandon closes a connection that nobody waits for any longer.
func (c *Conn) abandon() {
	if c.looped != nil && c.looped.Reclaim() { // it belonged to nobody else
		_ = c.Close()
		return
	}
	_ = c.Conn.Close()
}

// How long, and for how much, a connection that is to be closed is still listened to: closing a socket with unread
// input makes the kernel send a reset, which can overtake the answer (RFC 9112, section 9.6).
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)

// linger says that nothing more will come, and reads what is still on its way, within bounds.
func linger(c net.Conn) {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	var room [4 << 10]byte
	for left := lingerBytes; left > 0; {
		n, err := c.Read(room[:])
		if err != nil {
			return
		}
		left -= n
	}
}
