package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// tunnel joins client and shop once both have left HTTP, as for WebSocket (RFC 9110, section 7.8). It ends when
// both sides have, or when neither has sent anything for as long as a connection may be idle.
func (p *Proxy) tunnel(r *request, shop net.Conn) {
	client := r.conn
	client.beside = shop // the library joins nobody when the answer cannot be written
	client.afterwards = &afterwards{do: func() {
		defer shop.Close()
		t := tunnel{idle: client.server.IdleTimeout}
		t.join(halves{client}, shop)
	}}
	client.tunneled.Store(true)
	client.reader.Tunnel()
}

// halves is a client whose sides close one after the other.
type halves struct{ *Conn }

func (h halves) CloseWrite() error {
	if half, ok := h.Conn.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return h.Conn.Conn.Close()
}

type tunnel struct {
	idle   time.Duration // 0 = no limit
	moved  atomic.Int64  // Unix ns of the last byte in either direction
	broken atomic.Bool   // a deadline that passes now is the end
}

type twoWay interface {
	net.Conn
	CloseWrite() error
}

func (t *tunnel) join(client twoWay, shop net.Conn) {
	t.moved.Store(time.Now().UnixNano())
	var both sync.WaitGroup
	both.Go(func() { t.pump(client, shop) })
	both.Go(func() { t.pump(shop, client) })
	both.Wait()
}

// pump copies from src to dst until src ends. A fault on either side ends both.
func (t *tunnel) pump(dst, src net.Conn) {
	var room [8 << 10]byte
	for {
		t.within(src.SetReadDeadline)
		n, err := src.Read(room[:])
		if n > 0 {
			t.moved.Store(time.Now().UnixNano())
			t.within(dst.SetWriteDeadline)
			if _, err := dst.Write(room[:n]); err != nil {
				t.breakOff(dst, src)
				return
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && !t.broken.Load() && time.Since(time.Unix(0, t.moved.Load())) < t.idle:
		case err != io.EOF:
			t.breakOff(dst, src)
			return
		default:
			if half, ok := dst.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
				t.breakOff(dst, src)
			}
			return
		}
	}
}

// within sets the deadline of one read or write; that of a broken tunnel stays in the past.
func (t *tunnel) within(set func(time.Time) error) {
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
