package proxy

import (
	"errors"
	"io"
	"os"

	"sluice/proxy/http1"
	"sluice/proxy/reject"
)

var errBodyTooLarge = errors.New("body over max_body_size")

// checkBody reads the whole body into memory before a window or slot is booked: a slow body would hold either.
func (p *Proxy) checkBody(r *Request) rejection { return p.readBody(r) }

// readBody reads the whole body of a request into memory, at most MaxBody bytes. A length that was announced is judged
// before a byte of it is waited for; the buffer grows with what arrives, never with what was announced.
func (p *Proxy) readBody(r *Request) rejection {
	switch {
	case r.source.BodyRead:
		return rejection{}
	case r.exchange.Request.ContentLength > p.MaxBody:
		return bodyRejection(errBodyTooLarge)
	}
	err := r.readUpTo(p.MaxBody + 1)
	if err == nil && !r.source.BodyRead {
		err = errBodyTooLarge
	}
	return bodyRejection(err)
}

// readUpTo reads on until the body has ended or limit bytes of it are in memory.
func (r *Request) readUpTo(limit int64) error {
	b := r.scratch.body[:len(r.source.Body)]
	var err error
	for err == nil && int64(len(b)) < limit {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		var n int
		n, err = r.conn.ReadBody(b[len(b):min(int64(cap(b)), limit)])
		b = b[:len(b)+n]
	}
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
	return brokenBody(err)
}

func brokenBody(err error) rejection {
	var broken http1.ProtocolError
	switch {
	case errors.Is(err, errBodyTooLarge):
		return rejection{Reason: reject.TooLarge}
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
	return r.exchange.Request.Chunked || r.exchange.Request.ContentLength > 0
}

// upload is the client's body on its way to the upstream: what is in memory already, then what is still to come.
type upload struct {
	buffered []byte
	conn     *http1.Conn
	err      error // why it broke off
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	if len(u.buffered) > 0 {
		n := copy(p, u.buffered)
		u.buffered = u.buffered[n:]
		return n, nil
	}
	n, err := u.conn.ReadBody(p)
	if err != nil && err != io.EOF {
		u.err = err
	}
	return n, err
}
