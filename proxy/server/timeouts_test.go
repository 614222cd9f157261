package server

import (
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stopwatched records the deadlines that are set, and never waits.
type stopwatched struct {
	net.Conn
	reads, writes []time.Time
}

func (c *stopwatched) SetReadDeadline(t time.Time) error  { c.reads = append(c.reads, t); return nil }
func (c *stopwatched) SetWriteDeadline(t time.Time) error { c.writes = append(c.writes, t); return nil }

func TestDeadlines_AreNeverEarlyAndAtMostAQuarterLate(t *testing.T) {
	const wait = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		socket := &stopwatched{}
		var d deadlines
		for range 1000 {
			d.limitIdle(socket, wait)
			d.limitWrite(socket, wait)
			for _, set := range [][]time.Time{socket.reads, socket.writes} {
				if left := time.Until(set[len(set)-1]); left < wait || left > wait+wait/deadlineSlack {
					t.Fatalf("%v are left of %v", left, wait)
				}
			}
			time.Sleep(time.Millisecond) // of the bubble
		}
		if n := len(socket.reads); n > 50 {
			t.Errorf("%d deadlines for 1000 requests within a second", n)
		}
	})
}

func TestDeadlines_OfAnotherKindAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		socket := &stopwatched{}
		var d deadlines
		d.limitIdle(socket, time.Second)
		d.limitReads(socket, time.Minute)
		d.limitIdle(socket, time.Second)
		if left := time.Until(socket.reads[len(socket.reads)-1]); len(socket.reads) != 3 || left > 2*time.Second {
			t.Errorf("%d deadlines, and %v are left", len(socket.reads), left)
		}
	})
}

// crawl reads a byte every 100 ms.
func crawl(c net.Conn) {
	var one [1]byte
	for {
		time.Sleep(100 * time.Millisecond) // of the bubble
		if _, err := c.Read(one[:]); err != nil {
			return
		}
	}
}

func TestConn_LimitWritesGivesAllWritesOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, served := net.Pipe()
		var crawling sync.WaitGroup
		defer crawling.Wait()
		defer client.Close()
		c := &Conn{Conn: served, server: &Server{}}
		c.server.options.Store(&Options{WriteTimeout: 3 * time.Second})
		crawling.Go(func() { crawl(client) })
		piece := make([]byte, 9)
		c.beginRequest()
		for range 10 { // 9 s in all, and each in time
			if _, err := c.write(piece); err != nil {
				t.Fatalf("an answer that is not limited: %v", err)
			}
		}
		c.beginRequest()
		c.LimitWrites()
		time.Sleep(time.Minute) // of the bubble: the upstream's time is not the client's
		begun := time.Now()
		var err error
		for err == nil {
			_, err = c.write(piece)
		}
		if took := time.Since(begun); !errors.Is(err, os.ErrDeadlineExceeded) || took != 3*time.Second {
			t.Errorf("a limited answer: %v after %v, want its end after 3s", err, took)
		}
		if _, err := c.write(piece); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("one more write: %v", err)
		}
		c.beginRequest()
		if _, err := c.write(piece); err != nil {
			t.Errorf("the next answer: %v", err)
		}
	})
}
