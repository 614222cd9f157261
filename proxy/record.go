package proxy

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
	"sluice/proxy/metrics"
	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/proxy/server"
	"sluice/upstream"
)

// record tells the access log what became of the request: of all that the upstream may have seen, and of the rejections
// that the log samples. The tracer is told of what it began.
func (p *Proxy) record(r *Request) {
	reason := r.rejection.Reason
	logged := p.AccessLog != nil && !r.page.served &&
		(reason == reject.Admitted || reason.OutcomeUnknown() || p.AccessLog.Sampled(r.now, reason, r.nth))
	if !logged && !r.trace.on {
		return
	}
	e := p.accessRecord(r)
	if stream, ok := r.ctx.Response.BodyStream().(endingStream); ok {
		p.recordLater(stream, e, logged, r.trace)
		return
	}
	p.writeRecord(&e, logged, r.trace)
}

func (p *Proxy) writeRecord(e *metrics.AccessRecord, logged bool, t trace) {
	if logged {
		p.AccessLog.Log(*e)
	}
	if t.on {
		p.Tracer.End(t.Trace, *e)
	}
}

// recordLater writes the record when the upstream has sent the whole response, or has broken off. The texts are copied:
// their request is reused by then.
func (p *Proxy) recordLater(stream endingStream, e metrics.AccessRecord, logged bool, t trace) {
	for _, text := range []*[]byte{&e.ID, &e.Method, &e.Path, &e.SKU, &e.User} {
		*text = bytes.Clone(*text)
	}
	stream.OnEnd(func(broken bool) {
		if broken {
			e.Outcome = upstream.Broken
		}
		p.writeRecord(&e, logged, t)
	})
}

// accessRecord is what became of the request.
func (p *Proxy) accessRecord(r *Request) metrics.AccessRecord {
	a := &r.attempt
	e := metrics.AccessRecord{
		Client: r.conn.Peer(), ID: r.id, Method: r.head.Method, SKU: r.buyer.sku,
		User: r.buyer.user, Serial: r.reservation.Serial, Status: r.ctx.Response.StatusCode(), Reason: r.rejection.Reason,
		Detail: r.rejection.Detail, Observed: r.observed.Reason, Limit: r.limit, Wait: r.rejection.Wait, Version: p.Version,
		Sent: a.sent, Outcome: a.outcome, Target: a.request.Target, Order: r.outcome,
		Deadline: r.reservation.Deadline, BytesIn: -1, BytesOut: responseLength(&r.ctx.Response),
		Arrived: r.now, Decided: a.begun, Answered: a.replied, Done: p.Now(),
	}
	if r.route != &p.unmatched {
		e.Route, e.Gate = r.route.Name, r.route.Gate
	}
	if e.Reason == reject.Admitted {
		e.Detail = r.observed.Detail
	}
	if e.Limit == "" {
		e.Limit = p.bound(max(e.Reason, e.Observed), e.Detail.Cause)
	}
	e.Reserved = a.sent && e.Gate == route.Reserve && r.reservation.Serial != "" &&
		r.reservation.Reason == reject.Admitted
	if !a.sent {
		e.Decided, e.Answered = e.Done, e.Done
	}
	if len(e.Method) > 0 { // its request line was read
		e.Client, e.Path, e.BytesIn = r.clientAddr(), r.openPath(), r.bodyLength()
	}
	return e
}

// recordRejectedConn tells the access log of a connection that was rejected before any HTTP was read: the nth for that
// reason.
func (p *Proxy) recordRejectedConn(c *server.Conn, reason reject.Reason, nth uint64) {
	now := p.Now()
	if p.AccessLog == nil || !p.AccessLog.Sampled(now, reason, nth) {
		return
	}
	e := metrics.AccessRecord{
		Client: c.Peer(), Reason: reason, Limit: p.Bounds[reason], Version: p.Version,
		BytesIn: -1, BytesOut: -1, Arrived: now, Decided: now, Answered: now, Done: now,
	}
	if !c.Secure() { // else it is closed without an answer
		e.Status = p.responder.RawStatus(reason)
	}
	p.AccessLog.Log(e)
}

// openPath is the path without what may be a secret or a person: Java's servers put the session into it, as
// "/cart;jsessionid=…".
func (r *Request) openPath() []byte {
	if r.route.user.Uses(param.Path) {
		return []byte(r.route.shape)
	}
	path, _, _ := bytes.Cut(r.head.Path, semicolon)
	return path
}

var semicolon = []byte(";")

// bodyLength is how long the request's body is, as far as that is known; -1 = not known.
func (r *Request) bodyLength() int64 {
	switch {
	case r.source.BodyRead:
		return int64(len(r.source.Body))
	case r.head.Chunked:
		return -1
	}
	return max(r.head.ContentLength, 0)
}

// responseLength is how long the response's body is. A stream is not read for that.
func responseLength(resp *fasthttp.Response) int64 {
	if resp.IsBodyStream() {
		return max(int64(resp.Header.ContentLength()), -1)
	}
	return int64(len(resp.Body()))
}

// beginTrace asks the tracer. What an untrusted client says of traces is not believed: it would choose what is sampled.
func (p *Proxy) beginTrace(r *Request) {
	var parent []byte
	if r.client.trusted {
		parent, _ = r.source.Header(traceparent)
	}
	r.trace.Trace, r.trace.on = p.Tracer.Begin(parent)
}

const (
	traceparent = "Traceparent"
	tracestate  = "Tracestate"
)

// replacesTrace reports whether a field speaks of traces and does not travel on. Without a tracer all of them do.
func (p *Proxy) replacesTrace(r *Request, name []byte) bool {
	if p.Tracer == nil {
		return false
	}
	return !r.client.trusted && (octets.EqualFold(name, traceparent) || octets.EqualFold(name, tracestate)) ||
		r.trace.on && octets.EqualFold(name, traceparent)
}
