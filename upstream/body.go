package upstream

import (
	"bytes"
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

const (
	streamFrom     = 64 << 10 // bytes: a body that is announced smaller is read whole
	firstGrowth    = 64 << 10 // bytes: memory for a body that is announced, before any of it came
	leastGrowth    = 4 << 10  // bytes: memory for a body of unknown length
	maxChunkDigits = 15       // hexadecimal, which fit in 60 bits
)

// body reads one response's body, exactly to its end and not one byte further.
type body struct {
	in      *responseReader
	left    int64 // bytes still to come, of the body or of the current chunk
	framing framing
	begun   bool // chunked: a first chunk was read, so that a CRLF ends what was read
	done    bool
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

// Read implements io.Reader. It waits for some of the body, and not until p is full. A body that breaks off ends in
// another error than io.EOF.
func (b *body) Read(p []byte) (int, error) {
	for b.framing == chunked && b.left == 0 && !b.done {
		if err := b.nextChunk(); err != nil {
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

// nextChunk reads what stands between two chunks, and after the last one the trailers, which are dropped.
func (b *body) nextChunk() error {
	if b.begun {
		if end, err := b.in.line(maxChunkLine); err != nil {
			return err
		} else if len(end) != 0 {
			return errMalformed
		}
	}
	b.begun = true
	line, err := b.in.line(maxChunkLine)
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
	return b.dropTrailers()
}

func (b *body) dropTrailers() error {
	for n := 0; n < maxTrailers; {
		line, err := b.in.line(maxTrailers)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			b.done = true
			return nil
		}
		n += len(line) + len(crlf)
		name, value, found := bytes.Cut(line, []byte{':'})
		if !found || !octets.IsToken(name) || !octets.IsText(value) {
			return errMalformed
		}
	}
	return errTooLong
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

// appendTo appends the whole body to dst, if it has at most most bytes. Memory grows with the bytes that arrive, not
// with those that are announced.
func (b *body) appendTo(dst []byte, most int) ([]byte, error) {
	if b.framing == counted {
		if b.left > int64(most) {
			return dst, errTooLong
		}
		dst = slices.Grow(dst, int(min(b.left, firstGrowth)))
	}
	for !b.done {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, leastGrowth)
		}
		n, err := b.Read(dst[len(dst):min(cap(dst), most+1)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return dst, err
		}
		if len(dst) > most {
			return dst, errTooLong
		}
	}
	return dst, nil
}
