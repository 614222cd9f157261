package upstream

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"sluice/proxy"
)

const (
	inboxSize = 4 << 10  // bytes to begin with: nearly every answer of an order fits
	inboxKept = 16 << 10 // bytes that an idle connection may hold on to
	maxHead   = 64 << 10 // bytes of one head
	maxLine   = 256      // bytes of a chunk's size line
	maxTrail  = 16 << 10 // bytes of a trailer section
)

// What makes an answer Broken. They are told apart only in tests and logs.
var (
	errMalformed = errors.New("read answer: malformed")
	errTooLong   = errors.New("read answer: too long")
	errSurplus   = errors.New("read answer: more interim answers than are allowed")
	errUpgrade   = errors.New("read answer: 101 without an upgrade")
)

// timedOut reports whether err says that a deadline passed.
func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// inbox holds what came from the shop and was not used yet. Unlike a bufio.Reader it starts small and
// grows only for a head that needs it: 64 KiB for each connection would be a gift to slow shops.
type inbox struct {
	src  net.Conn
	buf  []byte
	r, w int // buf[r:w] is unread

	fault error // that the next read is to tell

	// aside is told before a read that may wait; nil = nobody needs to know.
	aside *proxy.Looped

	// patience, when it is not 0, is how long each read may wait; else the deadline set before stands.
	patience time.Duration
}

func (b *inbox) buffered() int { return b.w - b.r }

// begin makes room for an answer's first bytes in an inbox that is empty.
func (b *inbox) begin() {
	if len(b.buf) == 0 {
		b.buf = make([]byte, inboxSize)
	}
}

// fill waits for at least one byte more. Slices given out before are void afterwards.
func (b *inbox) fill(most int) error {
	if b.r > 0 {
		b.w = copy(b.buf, b.buf[b.r:b.w])
		b.r = 0
	}
	if b.w == len(b.buf) {
		if b.w >= most {
			return errTooLong
		}
		b.buf = append(b.buf, make([]byte, min(most, max(inboxSize, 2*b.w))-b.w)...)
	}
	if b.fault != nil {
		err := b.fault
		b.fault = nil
		return err
	}
	if b.patience > 0 {
		if err := b.src.SetReadDeadline(time.Now().Add(b.patience)); err != nil {
			return err
		}
	}
	if b.aside != nil {
		b.aside.StepAside()
	}
	n, err := b.src.Read(b.buf[b.w:])
	b.w += n
	if n > 0 {
		return nil // an error that came with bytes comes again
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// line takes one line, which must end in CRLF and have at most most bytes, and returns it without its end.
func (b *inbox) line(most int) ([]byte, error) {
	for seen := 0; ; {
		if i := bytes.IndexByte(b.buf[b.r+seen:b.w], '\n'); i >= 0 {
			end := b.r + seen + i
			line := b.buf[b.r:end]
			b.r = end + 1
			if len(line) == 0 || line[len(line)-1] != '\r' {
				return nil, errMalformed
			}
			if len(line) > most {
				return nil, errTooLong
			}
			return line[:len(line)-1], nil
		}
		if seen = b.buffered(); seen >= most {
			return nil, errTooLong
		}
		if err := b.fill(max(most+2, inboxSize)); err != nil {
			return nil, unexpected(err)
		}
	}
}

// head takes one head, to its empty line. A line that ends in a bare LF is refused as soon as it came.
func (b *inbox) head() ([]byte, error) {
	line := 0 // start of the line under way, from b.r
	for seen := 0; ; {
		i := bytes.IndexByte(b.buf[b.r+seen:b.w], '\n')
		if i < 0 {
			seen = b.buffered()
			if err := b.fill(maxHead); err != nil {
				return nil, unexpected(err)
			}
			continue
		}
		end := seen + i
		if end == line || b.buf[b.r+end-1] != '\r' {
			return nil, errMalformed
		}
		seen = end + 1
		if end == line+1 {
			raw := b.buf[b.r : b.r+seen]
			b.r += seen
			return raw, nil
		}
		line = seen
	}
}

// rest empties the inbox without waiting, at most n bytes (n < 0: all). The slice is good until the next fill.
func (b *inbox) rest(n int64) []byte {
	p := b.buf[b.r:b.w]
	if n >= 0 && int64(len(p)) > n {
		p = p[:n]
	}
	b.r += len(p)
	return p
}

// settle readies the inbox for an idle connection: a buffer that one huge head needed is given back.
func (b *inbox) settle() {
	b.r, b.w, b.patience, b.aside = 0, 0, 0, nil
	if len(b.buf) > inboxKept {
		b.buf = make([]byte, inboxSize)
	}
}

// unexpected says that an end in the middle of an answer is not an end.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
