package proxy

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// stopwatched notes the deadlines that are set, and never waits.
type stopwatched struct {
	net.Conn
	reads, writes []time.Time
}

func (c *stopwatched) SetReadDeadline(t time.Time) error  { c.reads = append(c.reads, t); return nil }
func (c *stopwatched) SetWriteDeadline(t time.Time) error { c.writes = append(c.writes, t); return nil }

func TestDeadlineIsNeverEarlyAndAtMostAQuarterLate(t *testing.T) {
	const d = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		socket := &stopwatched{}
		c := &Conn{Conn: socket}
		for range 1000 {
			c.restWithin(d)
			c.writeWithin(d)
			for _, set := range [][]time.Time{socket.reads, socket.writes} {
				if left := time.Until(set[len(set)-1]); left < d || left > d+d/slack {
					t.Fatalf("%v are left of %v", left, d)
				}
			}
			time.Sleep(time.Millisecond)
		}
		if n := len(socket.reads); n > 50 {
			t.Errorf("%d deadlines for 1000 requests within a second", n)
		}
	})
}

func TestDeadlineOfAnotherKindIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		socket := &stopwatched{}
		c := &Conn{Conn: socket}
		c.restWithin(time.Second)
		c.readWithin(time.Minute)
		c.restWithin(time.Second)
		if left := time.Until(socket.reads[len(socket.reads)-1]); len(socket.reads) != 3 || left > 2*time.Second {
			t.Errorf("%d deadlines, and %v are left", len(socket.reads), left)
		}
	})
}
