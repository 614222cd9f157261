package loop

import (
	"io"
	"net"
	"testing"
	"time"
)

// echoing opens loops whose sockets hear what they say.
func echoing(t *testing.T) (*Loops, net.Listener) {
	t.Helper()
	ls, err := Open(Options{Serve: func(s *Socket) {
		for {
			var room [1 << 10]byte
			n, err := s.Take(room[:])
			if err != nil {
				s.Close()
				return
			}
			if n > 0 {
				if _, err := s.Write(room[:n]); err != nil {
					s.Close()
					return
				}
			}
			if rests, err := s.Rest(time.Minute); rests || err != nil {
				return
			}
		}
	}, Expire: func(s *Socket) { s.Close() }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ls.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lo, err := ls.Listen(ln.(*net.TCPListener))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lo.Close() })
	go func() {
		for {
			s, err := lo.Accept()
			if err != nil {
				return
			}
			if _, err := s.(*Socket).Rest(time.Minute); err != nil {
				t.Error(err)
			}
		}
	}()
	return ls, lo
}

func TestEcho(t *testing.T) {
	_, ln := echoing(t)
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		c.Write([]byte("hello"))
		var got [5]byte
		c.SetReadDeadline(time.Now().Add(3 * time.Second))
		if _, err := io.ReadFull(c, got[:]); err != nil || string(got[:]) != "hello" {
			t.Fatal(err, string(got[:]))
		}
	}
}
