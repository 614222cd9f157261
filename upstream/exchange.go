package upstream

import (
	"time"

	"github.com/valyala/fasthttp"
)

// maxInterim is how many 1xx responses may come before the final one.
const maxInterim = 8

// timeouts bounds one exchange in time.
type timeouts struct {
	response time.Duration // from the last byte of the request to the response's head
	total    time.Duration // the exchange; of a stream, each single read and write
}

// of are those of a request.
func (t timeouts) of(req *Request) timeouts {
	if req.Timeout > 0 {
		t.response, t.total = req.Timeout, max(t.total, req.Timeout)
	}
	return t
}

// exchange is one request and its response on one connection.
type exchange struct {
	timeouts
	conn  *conn
	start time.Time

	head        head
	tunnel      *tunnel // where a 101 leads to; nil = no upgrade was asked for
	interim     int
	interimHead []byte // the last interim one, until the next read
	err         error  // why there is no response; nil where none was read
	uploadCut   bool   // the request's own body stream broke off
}

// disposition is what becomes of the connection after an exchange.
type disposition uint8

const (
	mustClose disposition = iota // it has said, or may still say, what the next exchange must not read
	mayReuse
	streaming // a stream in the response owns it
	stale     // it was not usable before: nothing was written
)

// run does the exchange. resp holds something only if it returns Answered.
func (e *exchange) run(req *Request, resp *fasthttp.Response, t *target) (Outcome, disposition) {
	if req.Until != 0 && time.Now().UnixMilli() >= req.Until { // this process was stopped meanwhile
		return Busy, mayReuse
	}
	if req.HTTP.IsBodyStream() && !t.hold(e.conn, req) {
		return Busy, mayReuse
	}
	early, err := e.send(req, t.authority)
	e.err = err
	switch {
	case err == errStale:
		return NotSent, stale
	case err != nil && e.conn.socket.written == 0:
		return NotSent, mustClose
	case err != nil && e.uploadCut:
		return Broken, mustClose
	case err != nil && !e.readEarlyResponse():
		return outcomeOf(err), mustClose
	case err != nil:
		early = true
	}
	for final := early; !final; {
		if final, err = e.readHead(); err != nil {
			e.err = err
			return outcomeOf(err), mustClose
		}
		if !final && req.Client != nil && e.head.status != 100 { // the client's wish for a 100 is never forwarded
			req.Client.Interim(e.interimHead)
		}
	}
	if req.HTTP.IsBodyStream() {
		e.start = time.Now() // the upload had its own time
	}
	outcome, d := e.receive(req, resp, t, early)
	if outcome != Answered {
		resp.Reset()
	}
	return outcome, d
}

// outcomeOf tells late from broken, of an exchange of which something was written.
func outcomeOf(err error) Outcome {
	if isTimeout(err) {
		return TimedOut
	}
	return Broken
}

// readEarlyResponse reads the response that an upstream may have given before it closed, or stalled on a body.
func (e *exchange) readEarlyResponse() bool {
	if e.conn.SetReadDeadline(time.Now().Add(earlyGrace)) != nil {
		return false
	}
	for {
		if final, err := e.readHead(); final || err != nil {
			return err == nil
		}
	}
}

// readHead checks one head into e.head and reports whether it is the final one, which stays in the buffer.
func (e *exchange) readHead() (final bool, err error) {
	in := &e.conn.in
	raw, err := in.head()
	if err != nil && in.tlsAlert() {
		err = errSpeaksTLS
	}
	if err != nil {
		return false, err
	}
	switch h := &e.head; {
	case !h.check(raw):
		return false, errMalformed
	case h.status == switching && e.tunnel == nil:
		return false, errUpgrade
	case !h.interim():
		return true, nil
	}
	if e.interim++; e.interim > maxInterim {
		return false, errManyInterim
	}
	e.interimHead = raw[e.head.skip:]
	_, err = in.buf.Discard(len(raw))
	return false, err
}
