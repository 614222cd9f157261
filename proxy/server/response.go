package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
)

// framing is how a client learns where an answer's body ends (RFC 9112, section 6.3).
type framing uint8

const (
	headAlone  framing = iota // 1xx, 204, 304, and answers to HEAD end with their head
	byLength                  // Content-Length
	inChunks                  // Transfer-Encoding: chunked
	untilClose                // with the connection: a body of unknown length, for HTTP/1.0
)

// framing chooses how the answer is framed, and the value of Content-Length; -1 = none is sent. Answers to HEAD and 304
// repeat what the upstream said, or the size of the body that is not sent (RFC 9110, section 8.6).
func (x *exchange) framing() (frame framing, length int64) {
	resp := &x.ctx.Response
	status, stream := resp.StatusCode(), resp.IsBodyStream()
	bodiless := status < 200 || status == fasthttp.StatusNoContent || status == fasthttp.StatusNotModified
	switch {
	case bodiless && status != fasthttp.StatusNotModified:
		return headAlone, -1
	case bodiless || x.toHEAD:
		switch {
		case !bodiless && !stream && len(resp.Body()) > 0:
			return headAlone, int64(len(resp.Body()))
		case len(resp.Header.Peek(fasthttp.HeaderContentLength)) > 0: // else ContentLength is 0 and means nothing
			return headAlone, int64(resp.Header.ContentLength())
		}
		return headAlone, -1
	case !stream:
		return byLength, int64(len(resp.Body()))
	case resp.Header.ContentLength() >= 0:
		return byLength, int64(resp.Header.ContentLength())
	case x.request.HTTP10:
		return untilClose, -1
	}
	return inChunks, -1
}

// maxJoined is up to which size, in bytes, a body is copied behind its head, to go out in one write.
const maxJoined = 16 << 10

// write writes the answer in its form.
func (x *exchange) write(c *Conn, frame framing, length int64, last bool) error {
	resp, connection := &x.ctx.Response, ""
	switch {
	case last:
		connection = "close"
	case x.request.HTTP10:
		connection = "keep-alive" // of its own accord HTTP/1.0 closes
	}
	x.text = appendHead(x.text[:0], resp, x.ready.Fields, frame, length, connection, c.server.date.now())
	if resp.IsBodyStream() && frame != headAlone {
		return x.writeStream(c, frame)
	}
	var rest []byte
	if frame == byLength {
		rest = resp.Body()
		n := min(len(rest), maxJoined)
		x.text, rest = append(x.text, rest[:n]...), rest[n:]
	}
	_, err := c.write(x.text)
	if err == nil && len(rest) > 0 {
		_, err = c.write(rest)
	}
	return err
}

// Begin makes resp an empty answer of the handler's own. The names of its fields are written as they are given.
func Begin(resp *fasthttp.Response, status int) {
	resp.Reset()
	resp.Header.SetNoDefaultContentType(true)
	resp.Header.DisableNormalizing()
	resp.SetStatusCode(status)
	resp.Header.SetContentLength(0) // also in answer to HEAD; a body makes it longer
}

// Prepared is the part of an answer that need not be put together field by field: to copy finished text costs a tenth.
// The fields are sent before those of ctx.Response.
type Prepared struct {
	Fields []byte // whole lines, without Date, and none of framing or of the connection
	Body   []byte // room for the body; it is sent when ctx.Response has it by SetBodyRaw
}

// AddTo adds the fields to h, where another server writes the answer.
func (p *Prepared) AddTo(h *fasthttp.ResponseHeader) {
	for lines := p.Fields; len(lines) > 0; {
		var line []byte
		line, lines = octets.Cut(lines, '\n')
		name, value := octets.Cut(line, ':')
		h.AddBytesKV(name, octets.Trim(bytes.TrimSuffix(value, crlf)))
	}
}

var crlf = []byte("\r\n")

// AppendResponse appends the whole of a response whose body is in memory, without Date. connection is the value of
// Connection, "" = none.
func AppendResponse(dst []byte, resp *fasthttp.Response, p *Prepared, connection string) []byte {
	dst = appendHead(dst, resp, p.Fields, byLength, int64(len(resp.Body())), connection, nil)
	return append(dst, resp.Body()...)
}

// appendHead appends the head with its empty line: prepared fields, those of resp, and framing of the server's own.
// fasthttp's writer would put its own Date in the place of the upstream's, and would order the fields anew. date is for
// a response without one (RFC 9110, section 6.6.1); nil = none.
func appendHead(dst []byte, resp *fasthttp.Response, fields []byte, frame framing, length int64, connection string,
	date []byte) []byte {
	h := &resp.Header
	status := h.StatusCode()
	dst = append(strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(status), 10), ' ')
	if message := h.StatusMessage(); len(message) > 0 {
		dst = append(dst, message...)
	} else {
		dst = append(dst, fasthttp.StatusMessage(status)...)
	}
	dst = append(append(dst, "\r\n"...), fields...)
	switching := status == fasthttp.StatusSwitchingProtocols
	for name, value := range h.All() {
		if string(name) == fasthttp.HeaderDate {
			date = nil
		}
		if switching && octets.EqualFold(name, "Connection") || !hopByHop(name) {
			dst = octets.AppendField(dst, name, value)
		}
	}
	if len(date) > 0 && status >= 200 {
		dst = octets.AppendField(dst, fasthttp.HeaderDate, date)
	}
	if length >= 0 {
		dst = append(strconv.AppendInt(append(dst, "Content-Length: "...), length, 10), "\r\n"...)
	}
	if frame == inChunks {
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	}
	if connection != "" && !switching {
		dst = octets.AppendField(dst, "Connection", connection)
	}
	return append(dst, "\r\n"...)
}

// dates tells the time of day for responses, to the second. It is safe for concurrent use.
type dates struct{ last atomic.Pointer[date] }

type date struct {
	begins time.Time // of the second, on the monotonic clock, too
	text   []byte
}

// now is the time of day as RFC 9110, section 5.6.7, writes it. The clock of the day is read once a second: it costs
// twice as much as the monotonic one.
func (d *dates) now() []byte {
	seen := d.last.Load()
	if seen == nil || time.Since(seen.begins) >= time.Second {
		now := time.Now()
		seen = &date{now.Add(-time.Duration(now.Nanosecond())), fasthttp.AppendHTTPDate(nil, now)}
		d.last.Store(seen)
	}
	return seen.text
}

// notSent are the fields for one connection alone (RFC 9110, section 7.6.1), or of framing.
var notSent = [...]string{
	"Trailer", "Connection", "Keep-Alive", "Content-Length", "Proxy-Connection", "Transfer-Encoding",
}

// hopByHop reports a field of notSent.
func hopByHop(name []byte) bool {
	for _, field := range notSent {
		if len(name) == len(field) && octets.EqualFold(name, field) {
			return true
		}
	}
	return false
}

// Errors of a body stream: the connection ends, so that the client takes no part of a body for a whole one.
var (
	errShortBody = errors.New("body stream ended before its Content-Length")
	errLongBody  = errors.New("body stream is longer than its Content-Length")
)

// writeStream writes the head, which stands in x.text, and the body stream behind it, and closes the stream.
func (x *exchange) writeStream(c *Conn, frame framing) (err error) {
	resp := &x.ctx.Response
	c.StepAside()
	w := &streamWriter{x: x, conn: c, frame: frame, left: int64(resp.Header.ContentLength())}
	w.piece = c.server.pieces.Get().(*piece)
	defer c.server.pieces.Put(w.piece)
	defer func() {
		if fault := recover(); fault != nil {
			c.server.options.Load().Logger.Error("reading a body stream panicked", "fault", fault)
			err = fmt.Errorf("body stream: %v", fault)
		}
		if err != nil && !w.flushed && frame != untilClose { // the head says what was cut off
			_ = w.flush()
		}
		if err != nil && !w.lost { // the client is there, and may have answers to read that came before
			c.lingerOnClose = true
		}
	}()
	if resp.ImmediateHeaderFlush {
		if err := w.flush(); err != nil {
			_ = resp.CloseBodyStream()
			return err
		}
	}
	if err := resp.BodyWriteTo(w); err != nil { // closes the stream
		return err
	}
	return w.end()
}

// piece is the buffer for one piece of a streamed body, with room for the framing of a chunk around it.
type piece [chunkHead + pieceSize + chunkEnd]byte

const (
	chunkHead = len("4000\r\n")
	pieceSize = 16 << 10 // 4000 in hexadecimal
	chunkEnd  = len("\r\n")
)

// streamWriter frames a streamed body. Each piece is written as it comes; the first one goes out with the head.
type streamWriter struct {
	x       *exchange
	conn    *Conn
	frame   framing
	left    int64 // bytes still to come, of a body by length
	piece   *piece
	flushed bool // the head was written
	lost    bool // a write to the client has failed
}

// ReadFrom implements io.ReaderFrom, so that the stream is read into the buffer that it is written from.
func (w *streamWriter) ReadFrom(r io.Reader) (n int64, err error) {
	empty := 0
	for {
		m, err := r.Read(w.piece[chunkHead : chunkHead+pieceSize])
		if empty++; m > 0 {
			empty, n = 0, n+int64(m)
			if err := w.writePiece(m); err != nil {
				return n, err
			}
		}
		switch {
		case err == io.EOF && w.frame == byLength && w.left > 0:
			return n, errShortBody
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		case empty == maxEmptyReads:
			return n, io.ErrNoProgress
		}
	}
}

// Write implements io.Writer, for streams that write themselves.
func (w *streamWriter) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		m := copy(w.piece[chunkHead:chunkHead+pieceSize], p[n:])
		if err = w.writePiece(m); err == nil {
			n += m
		}
	}
	return n, err
}

// writePiece frames and writes the n bytes of body in w.piece.
func (w *streamWriter) writePiece(n int) error {
	from, to := chunkHead, chunkHead+n
	switch w.frame {
	case byLength:
		if w.left -= int64(n); w.left < 0 {
			return errLongBody
		}
	case inChunks:
		var digits [8]byte
		size := append(strconv.AppendInt(digits[:0], int64(n), 16), "\r\n"...)
		from -= copy(w.piece[chunkHead-len(size):], size)
		to += copy(w.piece[to:], "\r\n")
	}
	return w.write(w.piece[from:to])
}

// write writes b, behind the head where that was not written yet.
func (w *streamWriter) write(b []byte) error {
	if w.flushed {
		_, err := w.conn.write(b)
		w.lost = w.lost || err != nil
		return err
	}
	w.x.text = append(w.x.text, b...)
	return w.flush()
}

// flush writes the head and what was appended to it.
func (w *streamWriter) flush() error {
	w.flushed = true
	_, err := w.conn.write(w.x.text)
	w.lost = w.lost || err != nil
	return err
}

var lastChunk = []byte("0\r\n\r\n")

// end writes what follows the last piece.
func (w *streamWriter) end() error {
	switch {
	case w.frame == byLength && w.left > 0:
		return errShortBody
	case w.frame == inChunks:
		return w.write(lastChunk)
	case !w.flushed:
		return w.flush()
	}
	return nil
}
