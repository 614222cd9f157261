//go:build linux && !noeventloop

package eventloop

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// After Close no connection waits or parks.
func TestGroup_ClosedGroupServesNothing(t *testing.T) {
	g := openGroup(t, Options{Serve: func(c *Conn) { echo(c, 16) }})
	ln := listen(t, g)
	dial(t, ln)
	adopted, _ := adopt(t, g)
	near, _ := pair(t)
	g.Close()
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	for _, c := range []*Conn{accepted.(*Conn), adopted} {
		if waiting, err := c.Wait(time.Minute); waiting || !errors.Is(err, net.ErrClosed) {
			t.Errorf("waiting %v, %v", waiting, err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read: %v", err)
		}
	}
	if _, err := g.Adopt(near); !errors.Is(err, net.ErrClosed) {
		t.Errorf("adopted: %v", err)
	}
	ln.Close()
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener: %v", err)
	}
}

// Close waits for the leaders, except for those in Serve, and wakes parked goroutines.
func TestGroup_CloseLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	defer eventually(t, func() bool { return goleak.Find(before) == nil })
	release, blocks := make(chan struct{}), make(chan struct{})
	stop := make(chan error, 1)
	g, err := Open(Options{Loops: 3, Serve: func(c *Conn) {
		c.StepAside()
		blocks <- struct{}{}
		<-release
		c.Close()
	}, Expire: func(c *Conn) { c.Close() }})
	if err != nil {
		t.Fatal(err)
	}
	parked, _ := adopt(t, g)
	go func() {
		_, err := parked.Read(make([]byte, 1))
		stop <- err
	}()
	awaitParked(t, parked, &parked.in)
	for range 20 {
		c, peer := adopt(t, g)
		if waiting, err := c.Wait(time.Minute); !waiting {
			t.Fatal(err)
		}
		io.WriteString(peer, "x")
		receive(t, blocks)
	}
	g.Close()
	g.Close()
	if err := receive(t, stop); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a parked read: %v", err)
	}
	close(release)
}

// A deadline ends Accept; connections come after it is removed.
func TestGroup_ListenerHasADeadline(t *testing.T) {
	ln := listen(t, openGroup(t, Options{}))
	d := ln.(interface{ SetDeadline(time.Time) error })
	d.SetDeadline(time.Unix(1, 0))
	if _, err := ln.Accept(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("accepted: %v", err)
	}
	d.SetDeadline(time.Time{})
	peer := dial(t, ln)
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.RemoteAddr().String() != peer.LocalAddr().String() || c.LocalAddr().String() != peer.RemoteAddr().String() {
		t.Errorf("it is at %s, from %s", c.LocalAddr(), c.RemoteAddr())
	}
}
