package proxy

import (
	"encoding/binary"
	"strconv"

	"sluice/internal/octets"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// build makes the request to the upstream: to whom it belongs, its head and its body. The look at the head is the only
// reading of a page; what is limited was read by fasthttp's parser too, before it took anything.
func (p *Proxy) build(r *Request) rejection {
	out := &r.attempt.request
	r.address()
	out.Whole = r.acquired.order
	out.Store = r.page.fetches
	out.Timeout = r.route.Timeout
	if r.acquired.order { // its units may be another's afterwards
		out.Until = r.reservation.Deadline
	}
	p.edit(r)
	return p.attachBody(r)
}

// address says on whose behalf the request is sent, and which connections it may use.
func (r *Request) address() {
	out := &r.attempt.request
	out.Order, out.ClientKey, out.Owner, out.Client = r.route.limited(), r.clientKey(), r.conn.Owner(), r.conn
}

// clientKey mixes the client's address into 64 bits (the finisher of SplitMix64).
func (r *Request) clientKey() uint64 {
	a := r.clientAddr().As16()
	x := binary.BigEndian.Uint64(a[:8]) ^ binary.BigEndian.Uint64(a[8:])
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
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

// edit makes the request that came the one that the upstream shall see. The names of its fields and their order stay,
// which fasthttp keeps where it treats no field in a special way. The first line is Host, see upstream.Request. What
// the proxy says itself comes last.
func (p *Proxy) edit(r *Request) {
	out, method, target := &r.attempt.request, r.head.Method, r.target()
	out.HTTP = &r.ctx.Request
	h := &out.HTTP.Header
	h.Reset() // what r.head knows of stays where it is
	h.DisableNormalizing()
	h.DisableSpecialHeader()
	h.SetNoDefaultContentType(true)
	h.SetMethodBytes(method)
	h.SetRequestURIBytes(target)
	if p.PassHost {
		h.AddBytesV("Host", r.head.Host)
	} else {
		h.Add("Host", "")
	}
	named := r.namedByConnection()
	for name, value := range r.head.Fields {
		if p.forwards(r, name, named) {
			h.AddBytesKV(name, value)
		}
	}
	r.scratch.lines = p.appendLines(r.scratch.lines[:0], r)
	out.Lines = r.scratch.lines
}

// appendLines appends the header lines that the proxy says itself.
func (p *Proxy) appendLines(b []byte, r *Request) []byte {
	if r.upgrades() {
		b = octets.AppendField(b, "Connection", "Upgrade")
		b = octets.AppendField(b, "Upgrade", r.head.Peek("Upgrade"))
	}
	if len(r.id) > 0 {
		b = octets.AppendField(b, p.RequestIDHeader, r.id)
	}
	if r.acquired.order {
		b = p.appendOrderFields(b, r)
	}
	if r.trace.on {
		b = metrics.AppendTraceparent(b, &r.trace.Trace)
	}
	if r.page.fetches {
		b = append(b, r.page.Conditions...)
	}
	b = r.appendForwardedFor(b)
	b = octets.AppendField(b, "X-Forwarded-Proto", r.scheme())
	if host := r.requestedHost(); len(host) > 0 {
		b = octets.AppendField(b, "X-Forwarded-Host", host)
	}
	if r.head.Via {
		for name, value := range r.head.Fields {
			if octets.EqualFold(name, "Via") {
				b = octets.AppendField(b, "Via", value)
			}
		}
	}
	version := "Via: 1.1 "
	if r.head.HTTP10 {
		version = "Via: 1.0 "
	}
	return append(append(append(b, version...), p.pseudonym...), "\r\n"...)
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
	} else if no := p.readBody(r); no.Reason != reject.Admitted {
		noRoom := no.Reason == reject.TooLarge || no.Reason == reject.Overloaded
		if !p.Observe || !noRoom { // in observe mode what does not fit in memory is streamed
			return no
		}
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

// addLength frames a body of n bytes.
func (r *Request) addLength(n int64) {
	r.scratch.value = strconv.AppendInt(r.scratch.value[:0], n, 10)
	r.ctx.Request.Header.AddBytesV("Content-Length", r.scratch.value)
}
