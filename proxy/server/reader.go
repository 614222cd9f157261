package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/valyala/fasthttp"
)

// reader reads the requests of one connection. It belongs to the goroutine that reads.
//
// A head is looked at in the buffer, as far as it has come.
type reader struct {
	parser  *parser
	src     io.Reader
	buf     []byte       // what has come and was not read is buf[at:end]
	at, end int          // see came
	small   []byte       // of usual size
	large   *[]byte      // borrowed, and buf while a head is larger; nil = buf is small
	text    bytes.Reader // a head that fasthttp reads
	body    body         // the body being read
	head    Head         // the head handed on last

	grown  bool  // it has had a large buffer
	begun  bool  // a part of the next head has come
	late   error // that came with the last bytes, for the next read
	broken error // the result of all later reading
	raw    bool  // see tunnel
}

// usualHead is the size of a buffer that most heads fit into, in bytes. A larger head borrows a large one.
const usualHead = 4 << 10

func (p *parser) newReader(src io.Reader) *reader {
	r := &reader{small: make([]byte, usualHead)}
	r.reset(p, src)
	return r
}

// reset begins with another connection, of which first was received before: a part of a head, or a whole one.
func (r *reader) reset(p *parser, src io.Reader, first ...byte) {
	*r = reader{parser: p, src: src, buf: r.small, small: r.small, head: noHead}
	if len(first) > len(r.buf) {
		r.grow()
	}
	r.end = copy(r.buf, first)
}

// giveBack gives a large buffer back.
func (r *reader) giveBack() {
	if r.large != nil {
		r.parser.large.Put(r.large)
		r.buf, r.large = r.small, nil
	}
}

// came is what has come and was not read.
func (r *reader) came() []byte { return r.buf[r.at:r.end] }

// more waits until more has come than is in the buffer, which has room for it.
func (r *reader) more() error {
	if r.at > 0 {
		r.end = copy(r.buf, r.came())
		r.at = 0
	}
	n, err := r.receive(r.buf[r.end:])
	r.end += n
	return err
}

// receive reads from the connection: bytes, or else an error.
func (r *reader) receive(p []byte) (n int, err error) {
	if err, r.late = r.late, nil; err != nil {
		return 0, err
	}
	for range maxEmptyReads {
		switch n, err = r.src.Read(p); {
		case n > 0:
			r.late = err
			return n, nil
		case err != nil:
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

// grow goes on with a large buffer. It reports false where the buffer is one.
func (r *reader) grow() bool {
	if r.large != nil {
		return false
	}
	r.large = r.parser.large.Get().(*[]byte)
	r.end = copy(*r.large, r.came())
	r.buf, r.at, r.grown = *r.large, 0, true
	return true
}

// readHead reads the next head into q, once all of it was looked at; its body comes by readBody. With an error q is
// empty. The error is
//   - a ProtocolError when the bytes break a rule, now and ever after;
//   - io.EOF when the connection ended between two requests, or the last one asked to close; also, now and ever
//     after, when the last one's body was not read to its end: the next head would be read from the middle of it;
//   - any other error of the connection as it is; but a time-out within a head is a ProtocolError, status 408.
//
// It does not allocate, once q has served for a head of the same size and a buffer is free.
func (r *reader) readHead(q *Request) error {
	q.reset()
	switch {
	case r.broken != nil:
		return r.broken
	case r.raw:
		return io.EOF
	case r.body.place != atEnd, r.head.Close: // RFC 9112, section 9.6: nothing after "close" is a request
		return r.fail(io.EOF)
	}
	if r.at == r.end {
		r.giveBack()
		r.at, r.end = 0, 0
	}
	err := r.look(q)
	r.begun = false
	if err != nil {
		q.reset()
		return err
	}
	r.head = q.Head
	r.body.begin(r.head)
	return nil
}

// look looks at what has come, and then at what comes, until there is a head.
func (r *reader) look(q *Request) error {
	for {
		if b := r.came(); len(b) > 0 {
			from, to, rule := q.read(r.parser, b)
			if rule != fine {
				return r.fail(rule.err())
			}
			if to > 0 {
				q.keep(b[from:to], nil)
				r.at += to
				return nil
			}
			r.at += from
		}
		if len(r.came()) == len(r.buf) && !r.grow() { // a head that outgrows it has outgrown the limit before
			return r.fail(headerTooLarge.err())
		}
		r.begun = r.at < r.end
		if err := r.more(); err != nil {
			return r.cutHead(err)
		}
	}
}

// parse has fasthttp read the head that was looked at, and reports whether it ends where the look has found its end.
func (r *reader) parse(q *Request, h *fasthttp.RequestHeader) bool {
	r.text.Reset(q.text)
	buf := r.parser.heads.Get().(*bufio.Reader)
	defer r.parser.heads.Put(buf)
	buf.Reset(&r.text)
	h.Reset()
	h.DisableNormalizing()
	whole := h.Read(buf) == nil && buf.Buffered() == 0
	if q.encoded != nil {
		h.SetRequestURIBytes(q.encoded)
	}
	return whole
}

// cutHead is what the connection's error means where a head is awaited.
func (r *reader) cutHead(err error) error {
	var late interface{ Timeout() bool }
	switch {
	case !r.begun:
		return err
	case err == io.EOF:
		return r.fail(headCutShort.err())
	case errors.As(err, &late) && late.Timeout():
		return r.fail(headLate.err())
	}
	return r.fail(err)
}

// readBody hands on the content of the body behind the last head, without its framing. It returns
//   - io.EOF at the body's end, and there only, also together with its last bytes;
//   - a ProtocolError when the framing breaks a rule, now and ever after, from readHead too; also together with the
//     last bytes before it;
//   - io.ErrUnexpectedEOF when the connection ended before the body did, or the body was given up;
//   - any other error of the connection as it is. A time-out may be followed by more.
func (r *reader) readBody(p []byte) (int, error) {
	switch {
	case r.body.place == atEnd:
		return 0, io.EOF
	case r.raw, r.broken == io.EOF: // what comes is no body any more, or will never come
		return 0, io.ErrUnexpectedEOF
	case r.broken != nil:
		return 0, r.broken
	case len(p) == 0:
		return 0, nil
	case r.body.place == inLength, r.body.content() && r.body.left >= usualHead:
		return r.readContent(p)
	}
	return r.readChunks(p)
}

// readContent hands on content, of which there is some to come.
func (r *reader) readContent(p []byte) (n int, err error) {
	p = p[:min(int64(len(p)), r.body.left)]
	if r.at == r.end && len(p) < usualHead { // what is behind the body may come along
		if err := r.more(); err != nil {
			return 0, r.cutBody(err)
		}
	}
	if n = copy(p, r.came()); n > 0 {
		r.at += n
	} else if n, err = r.receive(p); n == 0 {
		return 0, r.cutBody(err)
	}
	r.body.skip(n)
	if r.body.place == atEnd {
		return n, io.EOF
	}
	return n, nil
}

// maxEmptyReads is how often a source may return neither bytes nor an error before that counts as an error.
const maxEmptyReads = 100

// readChunks hands on the content of all chunks in the buffer: what a piece costs is not paid for each chunk.
func (r *reader) readChunks(p []byte) (n int, err error) {
	for n == 0 && r.body.place != atEnd {
		if r.at == r.end {
			if err := r.more(); err != nil {
				return 0, r.cutBody(err)
			}
		}
		var read int
		var rule Rule
		n, read, rule = r.body.decode(p, r.came())
		if rule != fine {
			return n, r.fail(rule.err())
		}
		r.at += read
	}
	if r.body.place == atEnd {
		return n, io.EOF
	}
	return n, nil
}

// cutBody is what the connection's error means within a body.
func (r *reader) cutBody(err error) error {
	if err == io.EOF {
		return r.fail(io.ErrUnexpectedEOF)
	}
	return err
}

// bodyRead reports whether the body behind the last head was read to its end, as one that is not there always was.
func (r *reader) bodyRead() bool { return r.body.place == atEnd }

// drainBody drops what of the body has already come, without waiting for more, and reports whether that was all of
// it. A protocol error among it is met by the next readHead.
func (r *reader) drainBody() bool {
	for r.body.place != atEnd && r.at < r.end && !r.raw && r.broken == nil {
		b := r.came()
		_, read, rule := r.body.decode(b, b)
		if rule != fine {
			_ = r.fail(rule.err()) // all later reading returns it
			break
		}
		r.at += read
	}
	return r.body.place == atEnd
}

// dropBody reads the body to its end, and reports whether it came.
func (r *reader) dropBody() bool {
	for !r.drainBody() {
		if r.broken != nil || r.more() != nil {
			return false
		}
	}
	return true
}

// pipelined reports that the last request was read whole, to the last byte of its body, and that bytes behind it have
// come. Asked by src within its own Read, true means that a head has begun and its rest is awaited.
func (r *reader) pipelined() bool {
	return r.body.place == atEnd && (r.at < r.end || r.begun) && !r.raw && r.broken == nil
}

// tunnel ends the reading of requests, for a connection that has changed its protocol. A body that was not read to its
// end stays so, and what has come of it is of the tunnel, chunk lines and all.
func (r *reader) tunnel() { r.raw = true }

// fail makes err the result of all later reading.
func (r *reader) fail(err error) error {
	r.at = r.end
	r.broken = err
	return err
}
