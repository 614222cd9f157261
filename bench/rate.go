package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"
)

// steady asks at a constant rate, whatever the answers take, as a crowd does that does not know of each other. Latency
// is counted from the instant a request was due: one that had to wait for a connection, or for this program, has
// waited. (A closed loop asks less while the gate is slow, and so leaves out the very requests that would have waited.)
type steady struct {
	address string // host:port
	request []byte
	perConn int // open connections
	rate    int // a second
	seconds int
}

// line is one connection; it has one request under way at most.
type line struct {
	conn  net.Conn
	in    *bufio.Reader
	due   chan int64 // of the request that was just sent, on the monotonic clock
	took  *hdrhistogram.Histogram
	wrong int // answers that are not 200, and those that did not come
}

// run asks for all seconds and returns the latencies in ns. An error means that a connection could not be opened or
// broke, or that more than one request in a hundred was not answered with 200.
func (s steady) run(ctx context.Context) (*hdrhistogram.Histogram, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	lines, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	free := make(chan *line, len(lines))
	var readers sync.WaitGroup
	for _, l := range lines {
		free <- l
		readers.Go(func() { l.read(free, fail) })
	}
	s.send(ctx, free)
	for _, l := range lines {
		close(l.due)
		if ctx.Err() != nil {
			l.conn.Close() // what is still to come is not needed
		}
	}
	readers.Wait()
	all, wrong := newLatencies(), 0
	for _, l := range lines {
		all.Merge(l.took)
		wrong += l.wrong
		l.conn.Close()
	}
	switch asked := int64(s.rate * s.seconds); {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case int64(wrong) > asked/100 || all.TotalCount() < asked:
		return nil, fmt.Errorf("ask %s at a constant rate: %d of %d were answered, %d of them not with 200", s.address,
			all.TotalCount(), asked, wrong)
	}
	return all, nil
}

// newLatencies counts ns up to a minute, to three digits.
func newLatencies() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Minute), 3)
}

func (s steady) dial(ctx context.Context) ([]*line, error) {
	var lines []*line
	for range s.perConn {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", s.address)
		if err != nil {
			for _, l := range lines {
				l.conn.Close()
			}
			return nil, err
		}
		lines = append(lines, &line{conn: c, in: bufio.NewReader(c), due: make(chan int64, 1), took: newLatencies()})
	}
	return lines, nil
}

// send sends each request when it is due, on a connection that is free. It has a thread of its own, since the
// scheduler's timers are coarser than the pace.
func (s steady) send(ctx context.Context, free chan *line) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	sharpen()
	begin, gap := monotonic(), int64(time.Second)/int64(s.rate)
	for i := range s.rate * s.seconds {
		due := begin + int64(i)*gap
		if monotonic() < due {
			pause(due)
		}
		select {
		case l := <-free:
			_ = l.conn.SetDeadline(time.Now().Add(10 * time.Second))
			l.due <- due
			_, _ = l.conn.Write(s.request) // what could not be written is not answered: its reader says so
		case <-ctx.Done():
			return
		}
	}
}

// read takes the answers of one connection and frees it again, or tells that it broke.
func (l *line) read(free chan<- *line, fail context.CancelCauseFunc) {
	var answer fasthttp.Response
	for due := range l.due {
		if err := answer.Read(l.in); err != nil {
			fail(fmt.Errorf("read an answer: %w", err))
			return
		}
		_ = l.took.RecordValue(min(monotonic()-due, int64(time.Minute)))
		if answer.StatusCode() != fasthttp.StatusOK {
			l.wrong++
		}
		free <- l
	}
}
