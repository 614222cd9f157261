package server

import "sluice/internal/octets"

// body follows the framing of one body, so that its content and its end are known to the byte.
type body struct {
	place  place
	left   int64 // bytes to come: of the body by length, or of the chunk's data
	digits int   // of the chunk size being read
}

// place is where in a body the next byte stands.
type place uint8

const (
	atEnd      place = iota // at the end of a message
	inLength                // in a body that Content-Length measures
	inSize                  // in the digits of a chunk size
	inSizeEnd               // at the LF behind them
	inChunk                 // in a chunk's data
	inChunkCR               // at the CR behind the data
	inChunkLF               // at the LF behind the data
	inLastSize              // at the LF behind the size 0
	inFinalCR               // at the CR of the empty line that ends the body
	inFinalLF               // at its LF
)

// begin prepares for the body that head announces.
func (d *body) begin(head Head) {
	switch {
	case head.Chunked:
		*d = body{place: inSize}
	case head.ContentLength > 0:
		*d = body{place: inLength, left: head.ContentLength}
	default:
		*d = body{}
	}
}

// content reports whether the next byte is content, not framing.
func (d *body) content() bool { return d.place == inLength || d.place == inChunk }

// decode reads raw as the body's next bytes, up to the body's end or until dst is full, and copies its content to dst,
// which may be raw. It returns the length of the content, and how many bytes it has read.
func (d *body) decode(dst, raw []byte) (n, read int, rule Rule) {
	for read < len(raw) && d.place != atEnd {
		if d.content() {
			room := min(len(raw)-read, len(dst)-n)
			if room == 0 {
				break
			}
			m := d.skip(room)
			if m == 1 { // a call costs more
				dst[n] = raw[read]
			} else {
				copy(dst[n:], raw[read:read+m])
			}
			n, read = n+m, read+m
			continue
		}
		if d.place == inChunkCR && d.nextSmallChunk(raw[read:]) {
			read += smallFraming
			continue
		}
		if rule := d.step(raw[read]); rule != fine {
			return n, read, rule
		}
		read++
	}
	return n, read, fine
}

// smallFraming is what stands between the data of a chunk and of one of 1 to 15 bytes: CRLF, a digit, CRLF.
const smallFraming = 5

// nextSmallChunk reads such framing at once, where it has come whole. All else is for step.
func (d *body) nextSmallChunk(b []byte) bool {
	if len(b) < smallFraming || b[0] != '\r' || b[1] != '\n' || b[3] != '\r' || b[4] != '\n' {
		return false
	}
	size := octets.Unhex(b[2])
	if size == 0 || size >= 16 {
		return false
	}
	*d = body{place: inChunk, left: int64(size), digits: 1}
	return true
}

// skip passes over at most n bytes of content, and returns how many.
func (d *body) skip(n int) int {
	if int64(n) < d.left {
		d.left -= int64(n)
		return n
	}
	n = int(d.left)
	d.left = 0
	if d.place == inChunk {
		d.place = inChunkCR
	} else {
		d.place = atEnd
	}
	return n
}

// step checks one byte of chunk framing (RFC 9112, section 7.1).
func (d *body) step(c byte) Rule {
	switch d.place {
	case inSize:
		return d.size(c)
	case inSizeEnd:
		return d.expect(c, '\n', inChunk)
	case inChunkCR:
		return d.expect(c, '\r', inChunkLF)
	case inChunkLF:
		d.digits = 0
		return d.expect(c, '\n', inSize)
	case inLastSize:
		return d.expect(c, '\n', inFinalCR)
	case inFinalCR:
		if c != '\r' {
			return trailer
		}
		return d.expect(c, '\r', inFinalLF)
	default:
		return d.expect(c, '\n', atEnd)
	}
}

// size reads one byte of a chunk size: 1 to 16 digits, at most the largest int64.
func (d *body) size(c byte) Rule {
	switch {
	case octets.Unhex(c) < 16:
		if d.digits == 16 || d.left >= 1<<59 { // another digit would not fit in 63 bits
			return badChunkSize
		}
		d.left = d.left<<4 | int64(octets.Unhex(c))
		d.digits++
		return fine
	case d.digits == 0:
		return badChunkSize
	case c == '\r' && d.left == 0:
		d.place = inLastSize
		return fine
	case c == '\r':
		d.place = inSizeEnd
		return fine
	case c == ';' || c == ' ' || c == '\t':
		return chunkExtension
	}
	return badChunkSize
}

// expect accepts the one byte that may stand here.
func (d *body) expect(c, want byte, next place) Rule {
	if c != want {
		return badChunkEnd
	}
	d.place = next
	return fine
}
