package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// crowd asks on many connections of which few are busy at a time, as shoppers do who look at an answer before they ask
// again. How many requests are under way does not depend on how many connections there are, so that what a connection
// costs is not mixed with what a queue costs.
type crowd struct {
	load
	run    string // a word that no other crowd has, so that users differ
	askers []*requester
	turn   atomic.Int64 // requests that were begun
	tour   bool         // SKUs are asked for one after another rather than at random
}

// requester has one request under way, on one of its connections after the other.
type requester struct {
	*crowd
	place int
	conns []net.Conn
	next  int
	in    *bufio.Reader
	out   []byte
	dice  *rand.Rand
	heard answers
}

// answers is what answers there were.
type answers struct {
	asked, forwarded, orders, rejected, wrong int
	odd                                       string // one of the wrong
}

func (h *answers) add(other answers) {
	h.asked += other.asked
	h.forwarded += other.forwarded
	h.orders += other.orders
	h.rejected += other.rejected
	h.wrong += other.wrong
	h.odd = cmp.Or(h.odd, other.odd)
}

// gather opens all connections, spread over the fronts.
func gather(ctx context.Context, l load, run string, fronts []string) (*crowd, error) {
	c := &crowd{load: l, run: run}
	for i := range min(l.Underway, l.Connections) {
		c.askers = append(c.askers, &requester{crowd: c, place: i, in: bufio.NewReaderSize(nil, 4<<10),
			dice: rand.New(rand.NewPCG(uint64(i), 1))})
	}
	err := c.all(func(a *requester) error {
		for i := a.place; i < l.Connections; i += len(c.askers) {
			d := net.Dialer{Timeout: 10 * time.Second}
			conn, err := d.DialContext(ctx, "tcp", fronts[i%len(fronts)])
			if err != nil {
				return err
			}
			_ = conn.(*net.TCPConn).SetLinger(0) // else the next gate's turn finds the ports in TIME_WAIT
			a.conns = append(a.conns, conn)
		}
		return nil
	})
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *crowd) close() {
	for _, a := range c.askers {
		for _, conn := range a.conns {
			conn.Close()
		}
	}
}

// all lets every asker do something, and returns an error of one.
func (c *crowd) all(do func(*requester) error) error {
	failed := make(chan error, len(c.askers))
	var wait sync.WaitGroup
	for _, a := range c.askers {
		wait.Go(func() {
			if err := do(a); err != nil {
				failed <- err
			}
		})
	}
	wait.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// play asks for so long, and for at most so many requests in all.
func (c *crowd) play(ctx context.Context, d time.Duration, most int64) (h answers, err error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	last := time.Now().Add(d + 10*time.Second)
	c.turn.Store(0)
	err = c.all(func(a *requester) error {
		a.heard = answers{}
		for _, conn := range a.conns {
			_ = conn.SetDeadline(last)
		}
		for ctx.Err() == nil {
			n := c.turn.Add(1)
			if n > most {
				return nil
			}
			if err := a.once(n); err != nil {
				return err
			}
		}
		return nil
	})
	for _, a := range c.askers {
		h.add(a.heard)
	}
	return h, err
}

// once asks on the next connection and reads the answer.
func (a *requester) once(n int64) error {
	conn := a.conns[a.next]
	if a.next++; a.next == len(a.conns) {
		a.next = 0
	}
	what := a.compose(n)
	if _, err := conn.Write(a.out); err != nil {
		return err
	}
	a.in.Reset(conn)
	var answer fasthttp.ResponseHeader
	if err := answer.Read(a.in); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	if _, err := a.in.Discard(answer.ContentLength()); err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	if !a.countAnswer(what, answer.StatusCode(), string(answer.Peek("X-Sluice-Reason"))) {
		a.heard.wrong++
		a.heard.odd = fmt.Sprintf("%d %s", answer.StatusCode(), answer.Peek("X-Sluice-Reason"))
	}
	return nil
}

// countAnswer counts an answer, and tells whether it is one to expect.
func (a *requester) countAnswer(what request, status int, reason string) bool {
	a.heard.asked++
	if status >= 300 {
		a.heard.rejected++
		switch what {
		case soldOut:
			return status == fasthttp.StatusConflict
		case tooMany:
			return status == fasthttp.StatusTooManyRequests
		case anOrder: // until the units are gone; undecided: all are reserved, and some not confirmed
			return a.Units > 0 && (status == fasthttp.StatusConflict || reason == "undecided")
		}
		return false
	}
	a.heard.forwarded++
	if what == anOrder {
		a.heard.orders++
	}
	return what != soldOut && what != tooMany
}
