package proxy

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
		time.Sleep(100 * time.Millisecond)
		if _, err := c.Read(one[:]); err != nil {
			return
		}
	}
}

func TestAnAnswerThatHoldsAPlaceHasOneTimeForAllItsWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, served := net.Pipe()
		var crawling sync.WaitGroup
		defer crawling.Wait()
		defer client.Close()
		c := &Conn{Conn: served, server: &Server{ServerOptions: ServerOptions{WriteTimeout: 3 * time.Second}}}
		crawling.Go(func() { crawl(client) })
		piece := make([]byte, 9)
		c.begin()
		for range 10 { // 9 s in all, and each in time
			if _, err := c.Write(piece); err != nil {
				t.Fatalf("an answer without a place: %v", err)
			}
		}
		c.begin()
		c.hasten()
		time.Sleep(time.Minute) // the shop's slowness is not the client's
		begun := time.Now()
		var err error
		for err == nil {
			_, err = c.Write(piece)
		}
		if took := time.Since(begun); !errors.Is(err, os.ErrDeadlineExceeded) || took != 3*time.Second {
			t.Errorf("an answer with a place: %v after %v, want its end after 3s", err, took)
		}
		if _, err := c.Write(piece); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("one more write: %v", err)
		}
		c.begin()
		if _, err := c.Write(piece); err != nil {
			t.Errorf("the next answer: %v", err)
		}
	})
}
