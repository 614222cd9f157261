package proxy

import (
	"errors"
	"io"
	"os"
	"slices"

	"sluice/limiter"
	"sluice/proxy/reject"
	"sluice/proxy/server"
)

const (
	// A body up to comeAtOnce bytes that has come along with its head is not counted in BodyMemory: it never waits for
	// its client, and stays in the memory that belongs to each request.
	comeAtOnce = 4 << 10 // bytes

	minPiece          = 512      // bytes of chunks, with their framing, that are read at once while there is memory
	defaultBodyMemory = 64 << 20 // bytes
)

var errBodyTooLarge = errors.New("body over max_body_size")

// checkBody reads the body, once the head is known to have one reading alone. The body of an order that is going to
// wait has a bound of its own.
func (p *Proxy) checkBody(r *Request) rejection {
	if r.route.Queue && r.head.ContentLength > p.MaxWaiting {
		return bodyRejection(errBodyTooLarge)
	}
	if err := r.conn.Parse(); err != nil {
		return bodyRejection(err)
	}
	return p.readBody(r)
}

// readBody reads the whole body of a request into memory, at most MaxBody bytes. A length that was announced is judged
// before a byte of it is waited for; the buffer grows with what arrives, within body_memory.
func (p *Proxy) readBody(r *Request) rejection {
	switch {
	case r.source.BodyRead || !r.hasBody():
		r.source.BodyRead = true
		return rejection{}
	case r.head.ContentLength > p.MaxBody:
		return bodyRejection(errBodyTooLarge)
	}
	err := r.readUpTo(p.MaxBody + 1)
	r.checked = p.Now() // it may have taken its time
	if err == nil && (!r.source.BodyRead || int64(len(r.source.Body)) > p.MaxBody) {
		err = errBodyTooLarge
	}
	return bodyRejection(err)
}

// readUpTo reads on until the body has ended or limit bytes of it are in memory. It asks for memory before it reads.
func (r *Request) readUpTo(limit int64) error {
	b := r.scratch.body[:len(r.source.Body)]
	if r.body.reserved == 0 && r.head.ContentLength <= comeAtOnce && r.conn.BodyCame() {
		return r.readAtOnce(b)
	}
	var err error
	for err == nil && int64(len(b)) < limit {
		if b, err = r.reserveBody(b, limit); err != nil {
			break
		}
		var n int
		n, err = r.conn.ReadBody(b[len(b):min(int64(cap(b)), r.body.reserved)])
		b = b[:len(b)+n]
		r.body.came.Store(int64(len(b)))
	}
	if cut := r.proxy.slow.end(&r.body); cut != nil {
		err = cut
	}
	return r.keepBody(b, err)
}

// reserveBody makes room for more of the body, of which limit bytes are read at most: it reserves memory, and then has
// the buffer b grow. Chunks and small bodies reserve twice of what has come.
func (r *Request) reserveBody(b []byte, limit int64) ([]byte, error) {
	enough := 1 // bytes of room
	if r.head.Chunked && r.body.reserved < limit {
		enough = minPiece
	}
	if r.body.reserved-int64(len(b)) < int64(enough) {
		if err := r.proxy.slow.reserve(&r.body, r.proxy.bodies, r.conn, r.nextBodySize(limit)); err != nil {
			return b, err
		}
	}
	if int64(cap(b)) >= r.body.reserved || cap(b)-len(b) >= enough {
		return b, nil
	}
	grown := make([]byte, len(b), min(max(4*int64(cap(b)), limiter.TinyBody), r.body.reserved))
	copy(grown, b)
	return grown, nil
}

// nextBodySize is what the body shall hold next, in bytes.
func (r *Request) nextBodySize(limit int64) int64 {
	length := r.head.ContentLength // -1 = chunks
	if length > limiter.SmallBody {
		return min(length, limit)
	}
	size := max(limiter.TinyBody, 2*r.body.reserved)
	if length > 0 {
		size = min(size, length)
	}
	return min(size, limit)
}

// readAtOnce reads a body that has come.
func (r *Request) readAtOnce(b []byte) (err error) {
	b = slices.Grow(b, int(max(r.head.ContentLength, 0)))
	for err == nil && len(b) < cap(b) {
		var n int
		n, err = r.conn.ReadBody(b[len(b):cap(b)])
		b = b[:len(b)+n]
	}
	if err == nil {
		err = io.EOF
	}
	return r.keepBody(b, err)
}

// keepBody keeps what was read of the body, up to err.
func (r *Request) keepBody(b []byte, err error) error {
	r.scratch.body, r.source.Body = b[:0], b
	if err == io.EOF {
		r.source.BodyRead, err = true, nil
	}
	return err
}

// bodyRejection says why a body could not be read. Without an error it allocates nothing.
func bodyRejection(err error) rejection {
	if err == nil {
		return rejection{}
	}
	var broken server.ProtocolError
	switch {
	case errors.Is(err, errBodyTooLarge):
		return rejection{Reason: reject.TooLarge}
	case errors.Is(err, errNoMemory):
		return rejection{Reason: reject.Overloaded, Detail: reject.Detail{Cause: reject.BodyMemory}}
	case errors.Is(err, errCut):
		return rejection{Reason: reject.TooSlow, Detail: reject.Detail{Cause: reject.BodyMemory}}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return rejection{Reason: reject.TooSlow}
	case errors.As(err, &broken):
		detail := reject.Detail{Cause: reject.ProtocolRule, Operand: broken.Rule.Text()}
		return rejection{Reason: reject.Malformed, Detail: detail}
	}
	detail := reject.Detail{Cause: reject.ProtocolRule, Operand: "body cut short"}
	return rejection{Reason: reject.Malformed, Detail: detail}
}

// hasBody reports that a body was announced, of one byte at least or in chunks.
func (r *Request) hasBody() bool {
	return r.head.Chunked || r.head.ContentLength > 0
}

// upload is a body that is sent while it comes: what is in memory already, then what is still to come.
type upload struct {
	first []byte
	conn  *server.Conn
	err   error // why it broke off; nil = it did not
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	if len(u.first) > 0 {
		n := copy(p, u.first)
		u.first = u.first[n:]
		return n, nil
	}
	n, err := u.conn.ReadBody(p)
	if err != nil && err != io.EOF {
		u.err = err
	}
	return n, err
}
