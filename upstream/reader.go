package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

const (
	readBufferSize = 4 << 10  // bytes; all that an idle connection keeps for reading
	maxHead        = 64 << 10 // bytes of one head
	maxChunkLine   = 256      // bytes of a chunk's size line
	maxTrailers    = 16 << 10 // bytes of a trailer section
)

// What makes a response Broken. They are told apart only in tests.
var (
	errMalformed   = errors.New("read response: malformed")
	errTooLong     = errors.New("read response: too long")
	errManyInterim = errors.New("read response: too many interim responses")
	errUpgrade     = errors.New("read response: 101 to a request that asked for no upgrade")
)

// isTimeout reports whether err says that a deadline passed.
func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// responseReader reads responses off a connection. Its buffer is small, and grows for a head that needs more.
type responseReader struct {
	buf     *bufio.Reader // reads from the responseReader itself; nil = not made yet
	src     net.Conn
	moved   []byte        // what the buffer held before it grew
	perRead time.Duration // bounds each read; 0 = until, or the deadline that was set before, stands
	until   time.Time     // bounds reads; zero = it does not
	bound   time.Time     // the deadline that it has set last; zero = none
}

// Read implements io.Reader for buf.
func (r *responseReader) Read(p []byte) (int, error) {
	if len(r.moved) > 0 {
		n := copy(p, r.moved)
		r.moved = r.moved[n:]
		return n, nil
	}
	end := r.until
	if r.perRead > 0 {
		end = time.Now().Add(r.perRead)
	}
	if end != r.bound && !end.IsZero() {
		if err := r.src.SetReadDeadline(end); err != nil {
			return 0, err
		}
		r.bound = end
	}
	return r.src.Read(p)
}

// buffered is the number of bytes that were read from the connection and not used.
func (r *responseReader) buffered() int {
	if r.buf == nil {
		return 0
	}
	return r.buf.Buffered()
}

// wait reads until n bytes are buffered. The buffer grows to maxHead at most.
func (r *responseReader) wait(n int) error {
	if r.buf == nil {
		r.buf = bufio.NewReaderSize(r, readBufferSize)
	}
	for {
		_, err := r.buf.Peek(n)
		if err != bufio.ErrBufferFull {
			return unexpectedEOF(err)
		}
		size := r.buf.Size()
		if size >= maxHead {
			return errTooLong
		}
		r.moved, _ = r.buf.Peek(r.buf.Buffered())
		r.buf = bufio.NewReaderSize(r, min(4*size, maxHead))
	}
}

// head waits for one whole head and returns it, up to its empty line, where it lies in the buffer. It is not consumed.
// One that can have no end, as its lines end in a bare LF, is rejected as soon as such a line came.
func (r *responseReader) head() ([]byte, error) {
	for seen := 0; ; seen = r.buffered() {
		if err := r.wait(max(seen+1, r.buffered())); err != nil {
			return nil, err
		}
		b, _ := r.buf.Peek(r.buf.Buffered())
		from := max(0, seen-len(headEnd)+1)
		if end := bytes.Index(b[from:], headEnd); end >= 0 {
			return b[:from+end+len(headEnd)], nil
		}
		for i := bytes.IndexByte(b[seen:], '\n'); i >= 0; i = bytes.IndexByte(b[seen:], '\n') {
			if seen += i + 1; seen < len(crlf) || b[seen-len(crlf)] != '\r' {
				return nil, errMalformed
			}
		}
	}
}

var headEnd = []byte(crlf + crlf)

// tlsAlert reports whether the upstream has answered with an alert of TLS (RFC 8446, section 5.1).
func (r *responseReader) tlsAlert() bool {
	if r.buffered() < 2 {
		return false
	}
	start, _ := r.buf.Peek(2)
	return start[0] == 21 && start[1] == 3
}

// line consumes one line, which must end in CRLF, and returns it without its end. It is valid until the next read.
// With an error nothing is consumed.
func (r *responseReader) line(most int) ([]byte, error) {
	for {
		b, _ := r.buf.Peek(r.buf.Buffered())
		end := bytes.IndexByte(b, '\n') - 1
		switch {
		case end > most || end < -1 && len(b) > most+1:
			return nil, errTooLong
		case end >= 0 && b[end] == '\r':
			_, err := r.buf.Discard(end + len(crlf))
			return b[:end], err
		case end >= -1:
			return nil, errMalformed
		}
		if _, err := r.buf.Peek(len(b) + 1); err == bufio.ErrBufferFull {
			return nil, errTooLong
		} else if err != nil {
			return nil, unexpectedEOF(err)
		}
	}
}

// reset readies the reader for an idle connection: a large buffer is given back.
func (r *responseReader) reset() {
	r.moved, r.perRead, r.until, r.bound = nil, 0, time.Time{}, time.Time{}
	if r.buf != nil && r.buf.Size() > readBufferSize {
		r.buf = nil
	}
}

const crlf = "\r\n"

// unexpectedEOF says that an end in the middle of a response is a fault.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
