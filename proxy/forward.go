package proxy

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// forward hands the request to the shop, once, and the shop's answer to the client. Where r.flight is set afterwards, the
// answer is yet to come, and answered goes on.
func (p *Proxy) forward(r *request) Reason {
	if p.tracer != nil {
		p.trace(r)
	}
	if reason := p.build(r); reason != Admitted {
		return reason
	}
	resp := r.resp
	quiet(resp)
	r.fate = Unsure // whatever happens now, but for what is learnt below
	r.sent, r.decided = true, p.clock()
	var shop net.Conn
	var outcome Outcome
	switch {
	case r.upgrades():
		r.conn.StepAside()
		shop, outcome = p.shop.Upgrade(&r.out, resp)
	case p.launcher != nil && r.conn.looped != nil && !r.fetches && !r.held:
		if r.flight, outcome = p.launcher.Begin(&r.out, resp, r.conn.looped); r.flight != nil {
			return Admitted
		}
	default:
		r.conn.StepAside()
		outcome = p.shop.Send(&r.out, resp)
	}
	return p.answered(r, outcome, shop)
}

// answered goes on with what came of a request that was sent. shop is the connection of one that has left HTTP.
func (p *Proxy) answered(r *request, outcome Outcome, shop net.Conn) Reason {
	resp := r.resp
	r.outcome, r.answered = outcome, p.clock()
	observe(&r.tally().took[outcome], time.Duration(r.answered-r.now))
	if outcome != NotSent {
		r.took = max(1, time.Duration(r.answered-r.decided))
	}
	if outcome == Answered {
		p.learn(r, resp)
	}
	if r.fetches && p.kept(r) {
		return Admitted
	}
	if outcome != Answered && r.upload.fault != nil && !r.route.gated() {
		return bodyFault(r.upload.fault) // no order, and not the shop's doing
	}
	if outcome == NotSent {
		r.fate = Dropped
	}
	if outcome != Answered {
		return refusalOf(outcome)
	}
	if shop != nil {
		p.tunnel(r, shop)
		return Admitted
	}
	if r.held {
		r.fate = p.settling.fateOf(resp)
	}
	if r.route.gated() {
		resp.Header.Del(shopOrder)
	}
	p.forgetPage(r)
	p.finish(r, resp)
	return Admitted
}

// refusalOf is what a client hears whose request has no answer.
func refusalOf(o Outcome) Reason {
	switch o {
	case NotSent:
		return NoUpstream
	case TimedOut:
		return UpstreamTimeout
	}
	return UpstreamError
}

// upgrades reports a request to leave HTTP that may go on. h2c is left unanswered, as a server may do: what would
// follow is not HTTP/1.1 to judge.
func (r *request) upgrades() bool {
	return r.asked.Upgrade && !r.asked.H2C && !r.route.gated()
}

// finish makes the shop's answer ready for the client. An answer that is a stream takes along what is to be given back.
func (p *Proxy) finish(r *request, resp *fasthttp.Response) {
	if p.idHeader != "" && len(resp.Header.Peek(p.idHeader)) == 0 {
		resp.Header.SetBytesV(p.idHeader, r.id)
	}
	r.drain()
	if !resp.IsBodyStream() {
		return
	}
	if r.admitted || r.placed != nil {
		p.leaveLater(r, resp.BodyStream())
	}
	if resp.Header.ContentLength() < 0 && r.asked.HTTP10 {
		p.untilClose(r, resp)
	}
}

// leaveLater keeps the place in the shop until a streamed answer has ended. The SKU lies in the request, which is
// gone by then: a copy.
func (p *Proxy) leaveLater(r *request, answer io.Reader) {
	ends, ok := answer.(interface{ OnClose(func()) })
	if !ok {
		return
	}
	held := &request{admitted: r.admitted, placed: r.placed, took: r.took, sku: append([]byte(nil), r.sku...)}
	r.admitted, r.placed = false, nil
	r.conn.hasten()
	ends.OnClose(func() { p.leave(held) })
}

// build makes the request that the shop shall see, out of what was judged.
func (p *Proxy) build(r *request) Reason {
	r.line = append(append(r.line[:0], r.method...), ' ')
	r.line = append(r.line, r.path...)
	if r.query != nil { // "/x?" keeps its question mark
		r.line = append(append(r.line, '?'), r.query...)
	}
	r.line = append(r.line, " HTTP/1.1\r\n"...)
	r.out = Outgoing{
		Line:   r.line,
		Head:   string(r.method) == "HEAD",
		Order:  r.route.gated(),
		Stream: true,
		Whole:  r.held,
		Store:  r.fetches,
		Key:    clientKey(r),
	}
	if p.passHost {
		r.out.Host = r.asked.Host()
	}
	r.fieldBuffer = p.appendFields(r.fieldBuffer[:0], r)
	reason := p.attachBody(r)
	r.out.Fields = r.fieldBuffer
	return reason
}

// appendFields appends what may travel on, in the order in which it came, then what the gate says itself.
func (p *Proxy) appendFields(dst []byte, r *request) []byte {
	named, via := r.namedByConnection(), false
	for name, value := range r.asked.Fields {
		if !endToEnd(name) || len(named) > 0 && hasToken(named, name) || equalFold(name, p.idHeader) {
			via = via || equalFold(name, "Via")
			continue
		}
		if r.held && equalFold(name, idempotencyKey) || r.fetches && conditional(name) || p.replaced(r, name) {
			continue
		}
		if !r.conn.trusted && (fromProxy(name) || equalFold(name, p.clientHeader)) {
			continue
		}
		dst = appendField(dst, name, value)
	}
	if r.upgrades() {
		dst = append(append(append(dst, "Connection: Upgrade\r\nUpgrade: "...), r.asked.Peek("Upgrade")...), "\r\n"...)
	}
	if len(r.id) > 0 {
		dst = appendField(dst, []byte(p.idHeader), r.id)
	}
	if r.held {
		dst = p.appendOrder(dst, r)
	}
	if r.traced {
		dst = appendTrace(dst, &r.trace)
	}
	if r.fetches {
		dst = append(dst, r.page.Conditions...)
	}
	return p.appendForwarded(dst, r, via)
}

func appendField(dst, name, value []byte) []byte {
	dst = append(append(dst, name...), ": "...)
	return append(append(dst, value...), "\r\n"...)
}

// appendForwarded says where the request came from. What came with it is extended only for trusted proxies; via tells that
// it came through others.
func (p *Proxy) appendForwarded(dst []byte, r *request, via bool) []byte {
	dst = append(dst, "X-Forwarded-For: "...)
	if r.conn.trusted {
		for name, value := range r.asked.Fields {
			if equalFold(name, "X-Forwarded-For") && len(value) > 0 {
				dst = append(append(dst, value...), ", "...)
			}
		}
	}
	if r.conn.peer.IsValid() {
		dst = r.conn.peer.AppendTo(dst)
	} else {
		dst = append(dst, "127.0.0.1"...) // a unix socket: somebody on this machine
	}
	dst = append(dst, "\r\n"...)
	dst = append(appendScheme(append(dst, "X-Forwarded-Proto: "...), r), "\r\n"...)
	if host := askedHost(r); len(host) > 0 {
		dst = appendField(dst, []byte("X-Forwarded-Host"), host)
	}
	if via {
		dst = appendVia(dst, r)
	}
	version := "1.1"
	if r.asked.HTTP10 {
		version = "1.0"
	}
	return append(append(append(dst, "Via: "...), version...), " sluice\r\n"...)
}

// appendVia appends who has had the request before.
func appendVia(dst []byte, r *request) []byte {
	for name, value := range r.asked.Fields {
		if equalFold(name, "Via") {
			dst = appendField(dst, name, value)
		}
	}
	return dst
}

// appendScheme appends the scheme that the client has used.
func appendScheme(dst []byte, r *request) []byte {
	if r.conn.trusted {
		if said := r.asked.Peek("X-Forwarded-Proto"); len(said) > 0 {
			return append(dst, said...)
		}
	}
	if r.conn.server.TLS != nil {
		return append(dst, "https"...)
	}
	return append(dst, "http"...)
}

// askedHost is the host that the client has asked for.
func askedHost(r *request) []byte {
	if r.conn.trusted {
		return orElse(r.asked.Peek("X-Forwarded-Host"), r.asked.Host())
	}
	return r.asked.Host()
}

func orElse(v, otherwise []byte) []byte {
	if len(v) > 0 {
		return v
	}
	return otherwise
}

// begun is how much of a body is read before a request is begun upstream: what is no longer goes out in one piece,
// and what is broken so early never reaches the shop.
const begun = 32 << 10

// attachBody frames the body anew: whole where it fits in memory, else as a stream.
func (p *Proxy) attachBody(r *request) Reason {
	if !r.bodyRead && !r.route.gated() {
		if err := r.readUpTo(begun); err != nil {
			return bodyFault(err)
		}
	} else if reason := p.takeBody(r); reason != Admitted {
		if reason != TooLarge || !p.observe {
			return reason
		}
	}
	switch {
	case r.bodyRead:
		r.out.Body = r.body
		if r.asked.Chunked || r.asked.ContentLength >= 0 { // the client announced a body, if only an empty one
			r.frame(int64(len(r.body)))
		}
	case r.asked.Chunked:
		r.fieldBuffer = append(r.fieldBuffer, "Transfer-Encoding: chunked\r\n"...)
		r.stream(-1)
	default:
		r.frame(r.asked.ContentLength)
		r.stream(r.asked.ContentLength)
	}
	return Admitted
}

// stream lets the shop read on where memory ends.
func (r *request) stream(length int64) {
	r.upload = upload{begun: r.body, conn: r.conn}
	r.out.BodyStream, r.out.BodyLength = &r.upload, length
}

func (r *request) frame(length int64) {
	r.fieldBuffer = append(r.fieldBuffer, "Content-Length: "...)
	r.fieldBuffer = append(strconv.AppendInt(r.fieldBuffer, length, 10), "\r\n"...)
}

// clientKey mixes the client's address into 64 bits (the finisher of SplitMix64).
func clientKey(r *request) uint64 {
	a := r.clientAddr().As16()
	x := binary.BigEndian.Uint64(a[:8]) ^ binary.BigEndian.Uint64(a[8:])
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
