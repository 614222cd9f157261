package eventloop

import (
	"net"
	"testing"
	"time"
)

// pair are two ends of a connection that no loop has taken.
func pair(t *testing.T) (near *net.TCPConn, far net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if far, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); far.Close() })
	return c.(*net.TCPConn), far
}

// hosted is a guest, and what the loop says of it.
type hosted struct {
	*Socket
	loops      *Loops
	near       *net.TCPConn
	far        net.Conn
	told, late chan *Socket
}

func host(t *testing.T) *hosted {
	t.Helper()
	h := &hosted{told: make(chan *Socket, 10), late: make(chan *Socket, 10)}
	var err error
	h.loops, err = Open(Options{Loops: 1, Serve: func(s *Socket) { h.told <- s }, Expire: func(s *Socket) { h.late <- s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.loops.Close)
	h.near, h.far = pair(t)
	raw, err := h.near.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	client := &Socket{loop: h.loops.all[0], fd: -1}
	if h.Socket, err = client.Guest(raw); err != nil {
		t.Fatal(err)
	}
	return h
}

// rests has the guest rest; what was told before is forgotten.
func (h *hosted) rests(t *testing.T, patience time.Duration) {
	t.Helper()
	h.Hush()
	if rests, err := h.Rest(patience); err != nil || !rests {
		t.Fatal(rests, err)
	}
}

func (h *hosted) hears(t *testing.T, from chan *Socket) {
	t.Helper()
	select {
	case s := <-from:
		if s != h.Socket {
			t.Fatal("of somebody else")
		}
	case <-time.After(patience):
		t.Fatal("nothing is told")
	}
}

func (h *hosted) takes(t *testing.T, text string) {
	t.Helper()
	got := make([]byte, len(text)+1)
	if n, err := h.near.Read(got); err != nil || string(got[:n]) != text {
		t.Fatalf("%q, %v; want %q", got[:n], err, text)
	}
}

// A guest that rests is told of each thing that comes, once, and its owner reads it by his own means.
func TestGuestIsToldOnceOfWhatComes(t *testing.T) {
	h := host(t)
	for _, text := range []string{"one", "two"} {
		h.rests(t, time.Minute)
		if _, err := h.far.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		h.hears(t, h.told)
		h.takes(t, text)
	}
	h.rests(t, time.Minute)
	h.far.Close()
	h.hears(t, h.told)
	if n := len(h.told) + len(h.late); n != 0 {
		t.Errorf("told %d times more", n)
	}
}

// What comes between the look and the rest ends the rest before it begins.
func TestGuestDoesNotRestOnNews(t *testing.T) {
	h := host(t)
	h.Hush()
	if _, err := h.far.Write([]byte("early")); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		rests, err := h.Rest(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if !rests {
			h.takes(t, "early")
			return
		}
		if !h.Reclaim() {
			h.hears(t, h.told)
			h.takes(t, "early")
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("overslept")
}

// A guest who rests for too long is told so; one who rests when the loops are closed, too; from then on there is no rest.
func TestGuestIsNeverForgotten(t *testing.T) {
	h := host(t)
	h.rests(t, time.Millisecond)
	h.hears(t, h.late)
	h.rests(t, time.Minute)
	h.loops.Close()
	h.hears(t, h.late)
	h.Hush()
	if rests, err := h.Rest(time.Minute); rests || err == nil {
		t.Error("rests in a loop that is closed", rests, err)
	}
	raw, err := h.near.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Guest(raw); err == nil {
		t.Error("a loop that is closed takes a guest")
	}
}

// After a guest has left, its descriptor may be another's.
func TestDescriptorOfAGuestThatLeftIsFree(t *testing.T) {
	h := host(t)
	fd := h.fd
	h.Leave()
	h.near.Close()
	if h.loop.at(int32(fd)) != nil {
		t.Error("it is still known")
	}
	if n := len(h.told) + len(h.late); n != 0 {
		t.Errorf("told %d times", n)
	}
}
