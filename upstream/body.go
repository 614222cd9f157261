package upstream

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"sluice/internal/octets"
)

// framing is how a response's body says where it ends.
type framing uint8

const (
	bodiless framing = iota
	counted          // Content-Length
	chunked
	untilClose // the connection ends with it
)

// chunkLine is a line of framing between chunks.
type chunkLine uint8

const (
	chunkSize chunkLine = iota
	chunkEnd            // the CRLF behind a chunk
	trailer             // or the empty line that ends the body
)

const (
	streamFrom     = 64 << 10 // bytes: a body that is announced smaller is read whole
	leastGrowth    = 4 << 10  // bytes: memory for a body of unknown length
	maxChunkDigits = 15       // hexadecimal, which fit in 60 bits
)

// body reads one response's body, exactly to its end and not one byte further.
type body struct {
	in       *responseReader
	left     int64 // bytes still to come, of the body or of the current chunk
	framing  framing
	next     chunkLine // of chunks
	trailers int       // bytes of trailers that were read
	done     bool
}

func bodyOf(h *head, toHead bool, in *responseReader) body {
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

// streams reports a body that is handed on as it comes: a large one, or one of unknown length.
func (b *body) streams() bool {
	return b.framing == chunked || b.framing == untilClose || b.left > streamFrom
}

// disposition is what becomes of the connection when nothing more is read of the body.
func (b *body) disposition(reusable bool) disposition {
	if reusable && b.done && b.in.buffered() == 0 {
		return mayReuse
	}
	return mustClose
}

// Read implements io.Reader. It waits for some of the body, and not until p is full. A body that breaks off ends in
// another error than io.EOF.
func (b *body) Read(p []byte) (int, error) {
	for b.framing == chunked && b.left == 0 && !b.done {
		if err := b.nextLine(); err != nil {
			return 0, err
		}
	}
	if b.done {
		return 0, io.EOF
	}
	if b.framing != untilClose {
		p = p[:min(int64(len(p)), b.left)]
	}
	n, err := b.in.buf.Read(p)
	b.left -= int64(n)
	switch {
	case b.framing == untilClose && err == io.EOF:
		b.done = true
		return n, io.EOF
	case b.framing == counted && b.left == 0:
		b.done = true
		return n, nil
	}
	return n, unexpectedEOF(err)
}

// nextLine reads one of the lines that stand between chunks, or behind the last one: a read that ends in a timeout goes
// on from there. Trailers are dropped.
func (b *body) nextLine() error {
	most := maxChunkLine
	if b.next == trailer {
		most = maxTrailers - b.trailers
	}
	line, err := b.in.line(most)
	if err != nil {
		return err
	}
	switch b.next {
	case chunkEnd:
		if len(line) != 0 {
			return errMalformed
		}
		b.next = chunkSize
	case chunkSize:
		size, ok := parseChunkSize(line)
		if !ok {
			return errMalformed
		}
		if b.left, b.next = size, chunkEnd; size == 0 {
			b.next = trailer
		}
	case trailer:
		name, value, found := bytes.Cut(line, []byte{':'})
		b.done = len(line) == 0
		b.trailers += len(line) + len(crlf)
		if !b.done && (!found || !octets.IsToken(name) || !octets.IsText(value)) {
			return errMalformed
		}
	}
	return nil
}

// parseChunkSize reads hexadecimal digits. An extension after a semicolon is passed over, as RFC 9112, section 7.1.1
// demands, and so are blanks behind the digits, with which some servers pad their chunks; anything else is rejected.
func parseChunkSize(line []byte) (n int64, ok bool) {
	for i, c := range line {
		digit := octets.Unhex(c)
		if digit > 15 {
			rest := octets.Trim(line[i:])
			return n, i > 0 && (len(rest) == 0 || rest[0] == ';' && octets.IsText(rest))
		}
		if i == maxChunkDigits {
			return 0, false
		}
		n = n<<4 | int64(digit)
	}
	return n, len(line) > 0
}

// errOver is appendTo's: the body has more bytes. It can be read on.
var errOver = errors.New("read response: over the limit")

// appendTo appends the body to dst, which has at most most bytes then, or one more and errOver. Memory grows with the
// bytes that arrive, not with those that are announced.
func (b *body) appendTo(dst []byte, most int) ([]byte, error) {
	if b.framing == counted && b.left > int64(most-len(dst)) {
		return dst, errOver
	}
	for !b.done {
		if len(dst) > most {
			return dst, errOver
		}
		if len(dst) == cap(dst) {
			n := max(leastGrowth, len(dst))
			if b.framing == counted {
				n = int(min(b.left, int64(max(n, streamFrom))))
			}
			dst = slices.Grow(dst, n)
		}
		n, err := b.Read(dst[len(dst):min(cap(dst), most+1)])
		dst = dst[:len(dst)+n]
		if err != nil && err != io.EOF {
			return dst, err
		}
	}
	return dst, nil
}
