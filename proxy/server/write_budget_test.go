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
