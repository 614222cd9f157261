package proxy

import (
	"errors"
	"io"
)

var errBodyTooLarge = errors.New("body over max_body_size")

// hasBody reports that a body was announced, of one byte at least or in chunks.
func (r *request) hasBody() bool {
	return r.asked.Chunked || r.asked.ContentLength > 0
}

// readBody takes the whole body of a gated request into memory, at most max bytes. A length that was announced is
// judged before a byte of it is waited for; the buffer grows with what arrives, never with what was announced.
func (r *request) readBody(max int64) error {
	if r.bodyRead {
		return nil
	}
	if r.asked.ContentLength > max {
		return errBodyTooLarge
	}
	err := r.readUpTo(max + 1)
	if err == nil && !r.bodyRead {
		err = errBodyTooLarge
	}
	return err
}

// readUpTo reads on until the body has ended or most bytes of it are in memory.
func (r *request) readUpTo(most int64) error {
	b := r.bodyBuffer[:len(r.body)]
	var err error
	for err == nil && int64(len(b)) < most {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		var n int
		n, err = r.conn.ReadBody(b[len(b):min(int64(cap(b)), most)])
		b = b[:len(b)+n]
	}
	r.bodyBuffer, r.body = b[:0], b
	if err == io.EOF {
		r.bodyRead, err = true, nil
	}
	return err
}
