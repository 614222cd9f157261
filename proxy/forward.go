package proxy

import (
	"encoding/binary"
	"io"
	"net"
	"time"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/upstream"
)

// forward hands the request to the upstream, once, and the upstream's response to the client. Without a usable response
// it rejects the request with the reason.
func (p *Proxy) forward(r *Request) {
	if r.page.served {
		r.ctx.Response.Header.Del(p.RequestIDHeader) // of the request that it was fetched for
		p.finishResponse(r)
		p.appendRateFields(r)
		return
	}
	if r.route.Queue {
		p.answerAccepted(r)
		return
	}
	if r.rejection = p.send(r); r.rejection.Reason != reject.Admitted {
		p.reject(r)
		return
	}
	p.appendRateFields(r)
}

// send builds the upstream request, sends it and takes the response.
func (p *Proxy) send(r *Request) rejection {
	if p.Tracer != nil {
		p.beginTrace(r)
	}
	if no := p.build(r); no.Reason != reject.Admitted {
		return no
	}
	a, resp := &r.attempt, &r.ctx.Response
	r.outcome = metrics.OrderUnknown // whatever happens now, but for what is learnt below
	a.sent, a.begun = true, p.Now()
	var tunnel net.Conn
	if r.upgrades() {
		tunnel, a.outcome = p.Upstream.Upgrade(&a.request, resp)
	} else {
		a.outcome = p.Upstream.Send(&a.request, resp)
	}
	a.replied = p.Now()
	if nth := r.shard().Took(a.outcome, time.Duration(a.replied-r.now)); nth%metrics.DecisionSample == 1 {
		r.client.shard.Decided(time.Duration(a.begun - r.now))
	}
	if a.outcome != upstream.NotSent && a.outcome != upstream.Busy {
		r.acquired.took = max(1, time.Duration(a.replied-a.begun))
	}
	if tunnel != nil {
		r.conn.Tunnel(tunnel)
		return rejection{}
	}
	return p.receive(r)
}

// receive takes what came back for a request that was sent.
func (p *Proxy) receive(r *Request) rejection {
	a, resp := &r.attempt, &r.ctx.Response
	if a.outcome == upstream.Answered && r.route.limited() {
		p.recordSoldOut(r, resp)
	}
	if r.page.fetches && p.storePage(r) {
		return rejection{}
	}
	switch a.outcome {
	case upstream.Answered:
		if r.acquired.order {
			r.outcome = p.Settlement.Outcome(resp)
		}
		if r.route.limited() {
			resp.Header.Del(OrderHeader)
		}
		p.forgetPage(r)
		p.finishResponse(r)
		return rejection{}
	case upstream.NotSent, upstream.Busy:
		if r.outcome = metrics.OrderRejected; a.outcome == upstream.Busy {
			return r.busy()
		}
	case upstream.Capped:
		r.repeatable = true // the upstream has answered, and may have done what was asked
	}
	if r.upload.err != nil && !r.route.limited() {
		return bodyRejection(r.upload.err) // no order, and not the upstream's doing
	}
	return rejection{Reason: reasonOf(a.outcome)}
}

// acquireConnection waits for a connection to the upstream before units are reserved: an order that gets none holds no
// unit meanwhile, and its Idempotency-Key is not used.
func (p *Proxy) acquireConnection(r *Request) rejection {
	r.address()
	if r.acquired.conn = p.Upstream.Acquire(&r.attempt.request); !r.acquired.conn {
		return r.busy()
	}
	return rejection{}
}

// busy is why a request was not sent for which no connection came free.
func (r *Request) busy() rejection {
	if r.conn.Gone() {
		return rejection{Reason: reject.ClientGone}
	}
	return rejection{Reason: reject.UpstreamBusy}
}

// address says on whose behalf the request is sent, and which connections it may use.
func (r *Request) address() {
	out := &r.attempt.request
	out.Order, out.ClientKey, out.Owner, out.Client = r.route.limited(), r.clientKey(), r.conn.Owner(), r.conn
}

// reasonOf is what a client hears whose request has no response.
func reasonOf(o upstream.Outcome) reject.Reason {
	switch o {
	case upstream.NotSent:
		return reject.NoUpstream
	case upstream.TimedOut:
		return reject.UpstreamTimeout
	case upstream.Busy, upstream.Capped:
		return reject.UpstreamBusy
	}
	return reject.UpstreamError
}

// upgrades reports a request to leave HTTP that may go on. h2c is left unanswered, as a server may do: what would
// follow is not HTTP/1.1. On a limited route it was rejected, unless the proxy only observes; then nothing is
// reserved for it.
func (r *Request) upgrades() bool {
	h := r.head
	return h.Upgrade && !h.H2C && (!r.route.limited() || r.proxy.Observe)
}

// finishResponse makes the response ready for the client. A stream takes along what is to be given back.
func (p *Proxy) finishResponse(r *Request) {
	resp := &r.ctx.Response
	if p.RequestIDHeader != "" && len(resp.Header.Peek(p.RequestIDHeader)) == 0 {
		resp.Header.SetBytesV(p.RequestIDHeader, r.id)
	}
	r.discardBody()
	if resp.IsBodyStream() && (r.acquired.stock || r.acquired.slot != nil || r.acquired.places.Any()) {
		p.releaseLater(r, resp.BodyStream())
	}
}

// discardBody passes over what is left of the request's body, or else has the connection end.
func (r *Request) discardBody() {
	if !r.conn.DiscardBody() {
		r.conn.CloseAfterResponse()
	}
}

// releaseLater keeps the slot until the upstream has sent a streamed response. The SKU is copied: its request is reused
// by then.
func (p *Proxy) releaseLater(r *Request, body io.Reader) {
	stream, ok := body.(endingStream)
	if !ok {
		return
	}
	owed := r.acquired
	owed.sku, owed.order = append([]byte(nil), owed.sku...), false
	r.conn.LimitWrites()
	r.acquired = acquired{order: r.acquired.order, conn: r.acquired.conn}
	stream.OnEnd(func(bool) { p.releaseCounted(&owed) })
}

// endingStream is a body that the upstream is still sending. OnEnd has f called when it has ended; broken = not whole,
// by the upstream's doing.
type endingStream interface{ OnEnd(f func(broken bool)) }

// build makes the request that came the one that the upstream shall see. The look at its head is the only reading of a
// page; what is limited was read by fasthttp's parser too, before it took anything.
func (p *Proxy) build(r *Request) rejection {
	out := &r.attempt.request
	r.address()
	out.Whole = r.acquired.order
	out.Store = r.page.fetches
	out.Timeout = r.route.Timeout
	p.edit(r)
	return p.attachBody(r)
}

// target is the request target that the upstream sees: as received, but for an absolute form on a route that guards
// stock, of which path and query go on.
func (r *Request) target() []byte {
	head := r.head
	target := head.Target
	if len(target) == 0 || target[0] == '/' || !r.route.Gate.GuardsStock() {
		return target
	}
	r.scratch.path = append(r.scratch.path[:0], head.Path...)
	if q := head.Query; q != nil {
		r.scratch.path = append(append(r.scratch.path, '?'), q...)
	}
	return r.scratch.path
}

// How much of a body is read before a connection to the upstream is taken, so that a slow client holds none. A larger
// one is streamed; what is broken so early never reaches the upstream.
const (
	maxBuffered = 1 << 20  // bytes of a body that is read whole
	firstPart   = 32 << 10 // bytes of a larger one
)

// attachBody frames the body anew: whole where it fits in memory, else as a stream.
func (p *Proxy) attachBody(r *Request) rejection {
	out, head := &r.attempt.request, r.head
	if !r.hasBody() { // as of nearly every page
		if head.ContentLength == 0 { // the client has announced it
			r.addLength(0)
		}
		return rejection{}
	}
	if !r.source.BodyRead && !r.route.limited() {
		r.conn.LimitEachRead()
		r.body.patient = true
		limit := int64(maxBuffered)
		if r.head.ContentLength > limit {
			limit = firstPart
		}
		if err := r.readUpTo(limit); err != nil && err != errNoMemory { // without memory it is streamed
			return bodyRejection(err)
		}
	} else if no := p.readBody(r); no.Reason != reject.Admitted && !(p.Observe && unreadable(no.Reason)) {
		return no
	}
	switch {
	case r.source.BodyRead:
		r.addLength(int64(len(r.source.Body)))
		out.HTTP.SetBodyRaw(r.source.Body)
		return rejection{}
	case head.Chunked:
		out.HTTP.Header.Add("Transfer-Encoding", "chunked")
	default:
		r.addLength(head.ContentLength)
	}
	r.upload = upload{first: r.source.Body, conn: r.conn}
	out.HTTP.SetBodyStream(&r.upload, int(head.ContentLength)) // -1 for chunks
	return rejection{}
}

// unreadable reports that a body does not fit in memory for this reason. In observe mode it is streamed.
func unreadable(reason reject.Reason) bool {
	return reason == reject.TooLarge || reason == reject.Overloaded
}

// clientKey mixes the client's address into 64 bits (the finisher of SplitMix64).
func (r *Request) clientKey() uint64 {
	a := r.clientAddr().As16()
	x := binary.BigEndian.Uint64(a[:8]) ^ binary.BigEndian.Uint64(a[8:])
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
