package proxy

import (
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
			r.outcome = p.Outcomes.Outcome(resp)
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
	r.acquired.conn = p.Upstream.Acquire(&r.attempt.request)
	if r.checked = p.Now(); !r.acquired.conn {
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
