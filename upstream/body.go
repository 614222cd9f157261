package upstream

import (
	"io"
	"slices"
)

// framing is how an answer's body says where it ends.
type framing uint8

const (
	bodiless framing = iota
	counted          // Content-Length
	chunked
	untilClose // the connection ends with it
)

// body reads one answer's body, exactly to its end and not one byte further.
type body struct {
	in      *inbox
	left    int64 // bytes still to come, of the body or of the chunk under way
	framing framing
	begun   bool // chunked: a first chunk was read, so that a CRLF ends what was read
	done    bool
}

func bodyOf(h *head, toHead bool, in *inbox) body {
	b := body{in: in}
	switch {
	case h.bodiless(toHead):
	case h.chunked:
		b.framing = chunked
	case h.length >= 0:
		b.framing, b.left = counted, h.length
	default:
		b.framing = untilClose
	}
	b.done = b.framing == bodiless || b.framing == counted && b.left == 0
	return b
}

// next waits for some of the body and returns it; io.EOF after the last of it. The slice is good until
// the next call.
func (b *body) next() ([]byte, error) {
	for !b.done {
		if b.framing == chunked && b.left == 0 {
			if err := b.chunk(); err != nil {
				return nil, err
			}
			continue
		}
		limit := b.left
		if b.framing == untilClose {
			limit = -1
		}
		if p := b.in.rest(limit); len(p) > 0 {
			b.left -= int64(len(p))
			b.done = b.framing == counted && b.left == 0
			return p, nil
		}
		if err := b.in.fill(inboxKept); err != nil {
			if err != io.EOF || b.framing != untilClose {
				return nil, unexpected(err)
			}
			b.done = true
		}
		// A body that fills the buffer has more to come: read it in larger pieces.
		if b.in.w == len(b.in.buf) && len(b.in.buf) < inboxKept {
			b.in.buf = append(b.in.buf, make([]byte, inboxKept-len(b.in.buf))...)
		}
	}
	return nil, io.EOF
}

// chunk reads what stands between two chunks, and after the last one the trailers, which are dropped:
// nobody downstream was promised any.
func (b *body) chunk() error {
	if b.begun {
		if end, err := b.in.line(2); err != nil {
			return err
		} else if len(end) != 0 {
			return errMalformed
		}
	}
	b.begun = true
	line, err := b.in.line(maxLine)
	if err != nil {
		return err
	}
	size, ok := parseChunkSize(line)
	if !ok {
		return errMalformed
	}
	if size > 0 {
		b.left = size
		return nil
	}
	return b.trailers()
}

func (b *body) trailers() error {
	for n := 0; n < maxTrail; {
		line, err := b.in.line(maxTrail)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			b.done = true
			return nil
		}
		n += len(line) + len(crlf)
		// The line's own CRLF still stands behind it in the buffer.
		if _, _, _, ok := cutField(line[:len(line)+len(crlf)]); !ok {
			return errMalformed
		}
	}
	return errTooLong
}

// parseChunkSize reads 1 to 15 hexadecimal digits; 15 fit in 60 bits. An extension after a semicolon
// is passed over, as RFC 9112, 7.1.1 demands; anything else after the digits is refused.
func parseChunkSize(line []byte) (int64, bool) {
	var n int64
	for i, c := range line {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		case c == ';' && i > 0:
			return n, isText(line[i:])
		default:
			return 0, false
		}
		if i == 15 {
			return 0, false
		}
		n = n<<4 | int64(c)
	}
	return n, len(line) > 0
}

// all appends the whole body to dst, if it has at most most bytes. Memory is taken as bytes arrive,
// not as they are announced.
func (b *body) all(dst []byte, most int) ([]byte, error) {
	if b.framing == counted {
		if b.left > int64(most) {
			return dst, errTooLong
		}
		dst = slices.Grow(dst, int(min(b.left, 64<<10)))
	}
	for {
		p, err := b.next()
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
		if len(dst)+len(p) > most {
			return dst, errTooLong
		}
		dst = append(dst, p...)
	}
}
