package upstream

import (
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
)

const (
	maxInterim = 8        // 1xx answers before the final one
	streamFrom = 64 << 10 // bytes: a body that is announced smaller is read whole
)

// exchange is one request and its answer on one connection.
type exchange struct {
	patience
	conn  *conn
	start time.Time

	head    head
	tunnel  *tunnel // where a 101 leads to; nil = none was asked for
	interim int
	cut     bool // the client's own body stream broke off
}

// fate is what becomes of the connection after an exchange.
type fate uint8

const (
	shut fate = iota // it has said, or may still say, what the next exchange must not hear
	keep
	lend  // a stream in the response owns it
	stale // it was no good before: nothing was written
)

// run does the exchange. resp is touched only if it returns Answered.
func (e *exchange) run(out *proxy.Outgoing, resp *fasthttp.Response, t *target) (proxy.Outcome, fate) {
	early, err := e.write(out, t.authority)
	return e.conclude(out, resp, t, early, err)
}

// conclude goes on where the request has been written, or could not be: early and err are those of write.
func (e *exchange) conclude(out *proxy.Outgoing, resp *fasthttp.Response, t *target, early bool, err error) (proxy.Outcome, fate) {
	if err == errStale {
		return proxy.NotSent, stale
	}
	if err != nil && e.conn.socket.written == 0 {
		return proxy.NotSent, shut
	}
	if err != nil {
		if e.cut {
			return proxy.Broken, shut
		}
		if !e.lastWords() {
			return outcomeOf(err), shut
		}
		early = true
	}
	for final := early; !final; {
		if final, err = e.readHead(); err != nil {
			return outcomeOf(err), shut
		}
	}
	if out.BodyStream != nil {
		e.start = time.Now() // the upload had its own time
	}
	return e.finish(out, resp, t, early)
}

// outcomeOf tells late from broken, of an exchange of which something was written.
func outcomeOf(err error) proxy.Outcome {
	if timedOut(err) {
		return proxy.TimedOut
	}
	return proxy.Broken
}

// lastWords reads the answer that a shop may have given before it closed or stalled on a body.
func (e *exchange) lastWords() bool {
	if e.conn.SetReadDeadline(time.Now().Add(grace)) != nil {
		return false
	}
	for {
		if final, err := e.readHead(); final || err != nil {
			return err == nil
		}
	}
}

// readHead reads one head into e.head and reports whether it is the final one.
func (e *exchange) readHead() (final bool, err error) {
	raw, err := e.conn.in.head()
	if err != nil {
		return false, err
	}
	switch h := &e.head; {
	case !h.parse(raw, e.conn.kept):
		return false, errMalformed
	case h.status == switching && e.tunnel == nil:
		return false, errUpgrade
	case !h.interim():
		return true, nil
	}
	if e.interim++; e.interim > maxInterim {
		return false, errSurplus
	}
	return false, nil
}
