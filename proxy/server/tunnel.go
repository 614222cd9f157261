package server

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// runTunnel joins client and upstream once both have left HTTP, as for WebSocket (RFC 9110, section 7.8). It ends
// when both sides have ended, or when neither has sent anything for IdleTimeout.
func runTunnel(c *Conn, behind []byte) {
	upstream := c.upgraded
	defer upstream.Close()
	c.StepAside()
	c.phase.Store(phaseTunnel)
	_ = c.Conn.SetDeadline(time.Time{})
	t := tunnel{idle: c.server.options.Load().IdleTimeout}
	t.join(&tunnelEnd{c.Conn, behind}, upstream)
}

// tunnelEnd is the client's end. What came along behind the request is read first.
type tunnelEnd struct {
	net.Conn
	behind []byte
}

// Read implements io.Reader.
func (e *tunnelEnd) Read(p []byte) (int, error) {
	if len(e.behind) > 0 {
		n := copy(p, e.behind)
		e.behind = e.behind[n:]
		return n, nil
	}
	return e.Conn.Read(p)
}

// CloseWrite ends the server's side alone, where the connection can.
func (e *tunnelEnd) CloseWrite() error {
	if half, ok := e.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return e.Conn.Close()
}

// tunnel copies both ways.
type tunnel struct {
	idle   time.Duration // 0 = no limit
	moved  atomic.Int64  // Unix ns of the last byte in either direction
	broken atomic.Bool   // a deadline that passes now is the end
}

func (t *tunnel) join(client, upstream net.Conn) {
	t.moved.Store(time.Now().UnixNano())
	var other sync.WaitGroup
	other.Go(func() { t.pump(client, upstream) })
	t.pump(upstream, client)
	other.Wait()
}

// pump copies from src to dst until src ends. A fault on either side ends both.
func (t *tunnel) pump(dst, src net.Conn) {
	var buf [8 << 10]byte
	for {
		t.limit(src.SetReadDeadline)
		n, err := src.Read(buf[:])
		if n > 0 {
			t.moved.Store(time.Now().UnixNano())
			t.limit(dst.SetWriteDeadline)
			if _, err := dst.Write(buf[:n]); err != nil {
				t.breakOff(dst, src)
				return
			}
		}
		switch {
		case err == nil, errors.Is(err, os.ErrDeadlineExceeded) && t.active():
		case err == io.EOF:
			if half, ok := dst.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
				t.breakOff(dst, src)
			}
			return
		default:
			t.breakOff(dst, src)
			return
		}
	}
}

// active reports that the other direction has moved a byte within the idle time.
func (t *tunnel) active() bool {
	return !t.broken.Load() && time.Since(time.Unix(0, t.moved.Load())) < t.idle
}

// limit sets the deadline of one read or write; that of a broken tunnel stays in the past.
func (t *tunnel) limit(set func(time.Time) error) {
	if t.idle <= 0 {
		return
	}
	_ = set(time.Now().Add(t.idle))
	if t.broken.Load() {
		_ = set(past)
	}
}

// breakOff makes every read and write on both connections fail from now on.
func (t *tunnel) breakOff(conns ...net.Conn) {
	t.broken.Store(true)
	for _, c := range conns {
		_ = c.SetDeadline(past)
	}
}

var past = time.Unix(1, 0)
