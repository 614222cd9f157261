package eventloop

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// whims serves a socket in one of many ways: by the leader or by somebody else, stepping aside or not, by much or by little.
func whims(s *Socket, gone *atomic.Int64) {
	if rand.IntN(4) == 0 {
		if rand.IntN(2) == 0 {
			s.StepAside()
		}
		go whim(s, gone)
		return
	}
	whim(s, gone)
}

func whim(s *Socket, gone *atomic.Int64) {
	room := make([]byte, []int{1, 5, 16, 100, 4096}[rand.IntN(5)])
	for {
		var n int
		var err error
		for first := true; first || rand.IntN(3) == 0 && err == nil; first = false {
			if n, err = s.Take(room); n > 0 {
				_, err = s.Write(room[:n])
			}
			if err == nil && n > 0 && rand.IntN(10) == 0 { // as for a head that comes in pieces
				s.SetReadDeadline(time.Now().Add(time.Millisecond))
				if n, err = s.Read(room); n > 0 {
					_, err = s.Write(room[:n])
				} else if os.IsTimeout(err) {
					err = nil
				}
			}
		}
		switch rand.IntN(100) {
		case 0:
			time.Sleep(time.Millisecond)
		case 1:
			s.StepAside()
			time.Sleep(time.Millisecond)
		}
		if err != nil {
			if s.Close() == nil {
				gone.Add(1)
			}
			return
		}
		rests, err := s.Rest(time.Minute)
		if err != nil {
			if s.Close() == nil {
				gone.Add(1)
			}
			return
		}
		if rests {
			return
		}
	}
}

// However a socket is served, by whom, and whoever closes it meanwhile: what comes is heard whole and by nobody else, and
// nothing is left.
func TestSocketsServedByWhimLoseNothing(t *testing.T) {
	for _, loops := range []int{1, 3} {
		for _, violent := range []bool{false, true} {
			t.Run(fmt.Sprint(loops, violent), func(t *testing.T) { runWhims(t, loops, violent) })
		}
	}
}

func runWhims(t *testing.T, loops int, violent bool) {
	fds := func() int { all, _ := os.ReadDir("/proc/self/fd"); return len(all) }
	before := fds()
	var gone, came atomic.Int64
	var known sync.Map
	ls, err := Open(Options{Loops: loops, Serve: func(s *Socket) { whims(s, &gone) }, Expire: func(s *Socket) {
		if s.Close() == nil {
			gone.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	tcp, _ := net.Listen("tcp", "127.0.0.1:0")
	ln, err := ls.Listen(tcp.(*net.TCPListener))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s := c.(*Socket)
			came.Add(1)
			known.Store(s, true)
			if rests, err := s.Rest(time.Minute); err != nil || !rests {
				if s.Close() == nil {
					gone.Add(1)
				}
			}
		}
	}()
	var stop atomic.Bool
	var all sync.WaitGroup
	if violent { // as Drain does
		all.Go(func() {
			for !stop.Load() {
				known.Range(func(k, _ any) bool {
					s := k.(*Socket)
					switch rand.IntN(20) {
					case 0:
						s.Hurry(time.Millisecond)
					case 1:
						if s.Reclaim() {
							if s.Close() == nil {
								gone.Add(1)
							}
						}
					case 2:
						if s.Close() == nil {
							gone.Add(1)
						}
					}
					s.mu.Lock()
					closed := s.closed
					s.mu.Unlock()
					if closed {
						known.Delete(s)
					}
					return true
				})
				time.Sleep(time.Millisecond)
			}
		})
	}
	var clients sync.WaitGroup
	for w := range 40 {
		clients.Go(func() {
			for n := range 10 {
				c, err := net.Dial("tcp", ln.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				c.SetDeadline(time.Now().Add(15 * time.Second))
				tag := fmt.Sprintf("%02d.%04d;", w, n)
				text := []byte(tag)
				for range rand.IntN(100) {
					text = append(text, tag...)
				}
				if rand.IntN(20) == 0 {
					for len(text) < 20_000 {
						text = append(text, tag...)
					}
				}
				half, rst, dribble := rand.IntN(2) == 0, rand.IntN(8) == 0, rand.IntN(2) == 0
				var sent sync.WaitGroup
				sent.Go(func() {
					for rest := text; len(rest) > 0; {
						k := len(rest)
						if dribble {
							k = 1 + rand.IntN(min(k, 20+k/4))
						}
						if _, err := c.Write(rest[:k]); err != nil {
							return
						}
						rest = rest[k:]
						if dribble && rand.IntN(10) == 0 {
							time.Sleep(time.Duration(rand.IntN(1500)) * time.Microsecond)
						}
					}
					if half {
						c.(*net.TCPConn).CloseWrite()
					}
				})
				want := len(text)
				if rst {
					want = rand.IntN(want)
				}
				got := make([]byte, want)
				k, err := io.ReadFull(c, got)
				if timeout, ok := err.(net.Error); ok && timeout.Timeout() || !violent && err != nil {
					t.Errorf("%s: %d of %d: %v", tag, k, len(got), err)
				}
				if !bytes.Equal(got[:k], text[:k]) {
					t.Errorf("%s heard another: %.60q", tag, got[:k])
				}
				if half && !rst && err == nil {
					if rest, err := io.ReadAll(c); !violent && err != nil || len(rest) > 0 {
						t.Errorf("%s: behind it %.60q, %v", tag, rest, err)
					}
				}
				if rst {
					c.(*net.TCPConn).SetLinger(0)
				}
				c.Close()
				sent.Wait()
			}
		})
	}
	clients.Wait()
	stop.Store(true)
	all.Wait()
	for i := 0; gone.Load() != came.Load(); i++ {
		if i == 500 {
			t.Errorf("%d came, %d are gone", came.Load(), gone.Load())
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, l := range ls.all {
		l.mu.Lock()
		for fd, s := range l.sockets {
			if s != nil {
				t.Errorf("descriptor %d is held", fd)
			}
		}
		l.mu.Unlock()
	}
	ln.Close()
	ls.Close()
	for i := 0; fds() > before+4; i++ {
		if i == 100 {
			t.Errorf("%d descriptors, %d before", fds(), before)
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// What a read has left behind counts for a first rest as for any other.
func TestFirstRestAfterAReadThatLeftSomething(t *testing.T) {
	heard := make(chan byte, 2)
	ls, err := Open(Options{Serve: func(s *Socket) {
		var b [1]byte
		if n, _ := s.Take(b[:]); n > 0 {
			heard <- b[0]
		}
		s.Close()
	}, Expire: func(*Socket) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer ls.Close()
	tcp, _ := net.Listen("tcp", "127.0.0.1:0")
	ln, err := ls.Listen(tcp.(*net.TCPListener))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c := dialed(t, ln)
	io.WriteString(c, "x")
	k, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := k.(*Socket)
	var b [1]byte
	for {
		if n, _ := s.Take(b[:]); n > 0 {
			break
		}
	}
	if rests, _ := s.Rest(time.Minute); rests {
		t.Log("rests at once")
	} else {
		s.Take(b[:])
		if rests, err := s.Rest(time.Minute); !rests {
			t.Fatal(err)
		}
	}
	io.WriteString(c, "y")
	select {
	case got := <-heard:
		if got != 'y' {
			t.Error(got)
		}
	case <-time.After(3 * time.Second):
		t.Error("it hears nothing")
	}
}
