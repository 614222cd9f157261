package eventloop

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

const patience = 10 * time.Second // of a test

// served opens loops and a listener. Serve owns a socket of which something has come.
func served(t *testing.T, o Options) net.Listener {
	t.Helper()
	if o.Expire == nil {
		o.Expire = func(s *Socket) { s.Close() }
	}
	ls, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ls.Close)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := ls.Listen(tcp.(*net.TCPListener))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			if rests, err := c.(*Socket).Rest(time.Minute); err != nil || !rests {
				t.Errorf("a new socket: %v, %v", rests, err)
			}
		}
	}()
	return ln
}

// echo says what has come, by so many bytes at a time, and rests again.
func echo(s *Socket, size int) {
	room := make([]byte, size)
	for {
		n, err := s.Take(room)
		if err == nil && n > 0 {
			_, err = s.Write(room[:n])
		}
		if err != nil {
			s.Close()
			return
		}
		if rests, err := s.Rest(time.Minute); rests || err != nil {
			return
		}
	}
}

func dialed(t *testing.T, ln net.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	hear(t, c, text)
}

func hear(t *testing.T, c net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		t.Fatalf("%q, %v; want %q", got, err, text)
	}
}

// What comes in pieces larger and smaller than the room for it, to many at once, comes back whole; no goroutine waits for it.
func TestEverythingThatComesIsServed(t *testing.T) {
	for _, size := range []int{1, 7, 4096} {
		ln := served(t, Options{Serve: func(s *Socket) { echo(s, size) }})
		before := runtime.NumGoroutine()
		var all []net.Conn
		for range 50 {
			all = append(all, dialed(t, ln))
		}
		for i := range 20 {
			for _, c := range all {
				say(t, c, string(bytes.Repeat([]byte{byte('a' + i)}, 1+13*i)))
			}
		}
		if n := runtime.NumGoroutine(); n > before+len(all)/2 {
			t.Errorf("%d goroutines, %d before there were %d connections", n, before, len(all))
		}
		var both sync.WaitGroup
		for _, c := range all {
			both.Go(func() {
				text := bytes.Repeat([]byte("0123456789"), min(50*size, 10_000))
				go c.Write(text)
				got := make([]byte, len(text))
				if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, text) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			})
		}
		both.Wait()
	}
}

// The last bytes of a peer and its end may be one event.
func TestEndIsHeardBehindTheLastBytes(t *testing.T) {
	ln := served(t, Options{Serve: func(s *Socket) { echo(s, 4096) }})
	for range 200 {
		c := dialed(t, ln)
		io.WriteString(c, "last")
		c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(c); err != nil || string(got) != "last" {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// Somebody who waits holds nobody up: neither who says so, nor, a little later, who does not.
func TestWhoWaitsDoesNotLead(t *testing.T) {
	for _, says := range []bool{true, false} {
		release, waits := make(chan struct{}), make(chan struct{}, 5)
		ln := served(t, Options{Loops: 1, Serve: func(s *Socket) {
			select {
			case waits <- struct{}{}: // the first five
				if says {
					s.StepAside()
				}
				<-release
			default:
			}
			echo(s, 16)
		}})
		var waiting []net.Conn
		for range 5 {
			c := dialed(t, ln)
			io.WriteString(c, "w")
			waiting = append(waiting, c)
		}
		for len(waits) < cap(waits) {
			time.Sleep(time.Millisecond)
		}
		say(t, dialed(t, ln), "x")
		close(release)
		for _, c := range waiting {
			hear(t, c, "w")
			say(t, c, "y")
		}
	}
}

// A socket that is served is read, written and closed as any other connection.
func TestSocketIsAConnection(t *testing.T) {
	type result struct {
		err  error
		took time.Duration
	}
	results := make(chan result, 1)
	try := func(act func(*Socket) error) (net.Conn, result) {
		ln := served(t, Options{Serve: func(s *Socket) {
			var first [1]byte
			s.Take(first[:])
			begun := time.Now()
			err := act(s)
			s.Close()
			results <- result{err, time.Since(begun)}
		}})
		c := dialed(t, ln)
		io.WriteString(c, "x")
		select {
		case r := <-results:
			return c, r
		case <-time.After(patience):
			t.Fatal("it never ends")
			return nil, result{}
		}
	}
	many := make([]byte, 64<<20)
	for name, act := range map[string]func(*Socket) error{
		"a read that is late": func(s *Socket) error {
			s.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			_, err := s.Read(make([]byte, 1))
			return err
		},
		"a write that is late": func(s *Socket) error {
			s.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			_, err := s.Write(many)
			return err
		},
		"a deadline that is set while it waits": func(s *Socket) error {
			time.AfterFunc(20*time.Millisecond, func() { s.SetDeadline(time.Unix(1, 0)) })
			_, err := s.Read(make([]byte, 1))
			return err
		},
	} {
		if _, r := try(act); !errors.Is(r.err, os.ErrDeadlineExceeded) || r.took > patience/2 {
			t.Errorf("%s: %v after %s", name, r.err, r.took)
		}
	}
	for name, act := range map[string]func(*Socket) error{
		"a read that is closed": func(s *Socket) error {
			time.AfterFunc(20*time.Millisecond, func() { s.Close() })
			_, err := s.Read(make([]byte, 1))
			return err
		},
		"a write that is closed": func(s *Socket) error {
			time.AfterFunc(20*time.Millisecond, func() { s.Close() })
			_, err := s.Write(many)
			return err
		},
		"a rest that comes too late": func(s *Socket) error {
			s.Close()
			_, err := s.Rest(time.Minute)
			return err
		},
	} {
		if _, r := try(act); !errors.Is(r.err, net.ErrClosed) {
			t.Errorf("%s: %v", name, r.err)
		}
	}
	c, r := try(func(s *Socket) error {
		if s.RemoteAddr().String() == s.LocalAddr().String() || s.Peer().String() != s.RemoteAddr().String() {
			t.Errorf("it is at %s, from %s", s.LocalAddr(), s.RemoteAddr())
		}
		s.Write([]byte("end"))
		return s.CloseWrite()
	})
	if got, err := io.ReadAll(c); r.err != nil || err != nil || string(got) != "end" {
		t.Errorf("%v; %q, %v", r.err, got, err)
	}
}

// Whoever rests for too long is let go, in a hurry at once; who speaks in time is not.
func TestRestEnds(t *testing.T) {
	expired := make(chan *Socket, 10)
	var s *Socket
	known := make(chan struct{})
	ln := served(t, Options{Loops: 1, Serve: func(k *Socket) {
		s = k
		close(known)
		echo(k, 16)
	}, Expire: func(k *Socket) { expired <- k; k.Close() }})
	c := dialed(t, ln)
	say(t, c, "x")
	<-known
	rests := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.resting
	}
	for end := time.Now().Add(patience); !rests(); time.Sleep(time.Millisecond) { // who does not rest yet is not hurried
		if time.Now().After(end) {
			t.Fatal("it does not rest")
		}
	}
	s.Hurry(time.Millisecond)
	select {
	case k := <-expired:
		if k != s {
			t.Error("it is another")
		}
	case <-time.After(patience):
		t.Fatal("it rests for ever")
	}
	if got, err := io.ReadAll(c); err != nil || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
}

// A descriptor is used again at once; nobody hears what is meant for another.
func TestWhatIsSaidToOneIsHeardByNoOther(t *testing.T) {
	ln := served(t, Options{Serve: func(s *Socket) {
		go func() { time.Sleep(time.Millisecond); s.Close() }() // while it is served
		echo(s, 16)
	}})
	var both sync.WaitGroup
	for i := range 8 {
		both.Go(func() {
			name := string(rune('a' + i))
			for range 200 {
				c, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				c.SetDeadline(time.Now().Add(patience))
				for range 5 {
					io.WriteString(c, name)
				}
				got, _ := io.ReadAll(c)
				if bytes.Trim(got, name) != nil && len(bytes.Trim(got, name)) > 0 {
					t.Errorf("%s heard %q", name, got)
				}
				c.Close()
			}
		})
	}
	both.Wait()
}

func TestClosedLoopsTakeNobody(t *testing.T) {
	ls, err := Open(Options{Serve: func(s *Socket) { echo(s, 16) }})
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := ls.Listen(tcp.(*net.TCPListener))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialed(t, ln)
	ls.Close()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.(*Socket).Rest(time.Minute); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it rests: %v", err)
	}
	ln.Close()
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener: %v", err)
	}
}
