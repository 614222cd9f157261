package proxy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/valyala/fasthttp"

	"sluice/internal/octets"
	"sluice/proxy/metrics"
	"sluice/proxy/pagekey"
)

// edit makes the header that came the one that the upstream shall see. Its names and the order of its lines stay, which
// fasthttp keeps where it treats no field in a special way. The first line is Host, see upstream.Request.
func (p *Proxy) edit(r *Request) *fasthttp.RequestHeader {
	h := &r.ctx.Request.Header
	method, target := r.method(), r.target()
	h.Reset() // what r.head knows of stays where it is
	h.DisableNormalizing()
	h.DisableSpecialHeader()
	h.SetNoDefaultContentType(true)
	h.SetMethodBytes(method)
	h.SetRequestURIBytes(target)
	if p.PassHost {
		h.AddBytesV("Host", r.head.Host())
	} else {
		h.Add("Host", "")
	}
	p.addFields(h, r)
	return h
}

// addFields adds the header lines that may travel on, in the order in which they came, then what the proxy says itself.
func (p *Proxy) addFields(h *fasthttp.RequestHeader, r *Request) {
	named, via := r.namedByConnection(), false
	for name, value := range r.head.Fields {
		isVia := octets.EqualFold(name, "Via")
		via = via || isVia
		if isVia || !p.forwards(r, name, named) {
			continue
		}
		h.AddBytesKV(name, value)
	}
	if r.upgrades() {
		h.Add("Connection", "Upgrade")
		h.AddBytesV("Upgrade", r.head.Peek("Upgrade"))
	}
	if len(r.id) > 0 {
		h.AddBytesV(p.RequestIDHeader, r.id)
	}
	if r.acquired.order {
		p.addOrderFields(h, r)
	}
	if r.trace.on {
		r.scratch.value = metrics.AppendTraceparent(r.scratch.value[:0], &r.trace.Trace)
		addLines(h, r.scratch.value)
	}
	if r.page.fetches {
		addLines(h, r.page.Conditions)
	}
	p.addForwarded(h, r, via)
}

// forwards reports whether a header line may travel on. named are the fields that Connection declares to be about the
// connection alone.
func (p *Proxy) forwards(r *Request, name, named []byte) bool {
	switch {
	case !octets.EndToEnd(name), len(named) > 0 &&
		octets.HasToken(named, name), octets.EqualFieldName(name, p.RequestIDHeader):
		return false
	case r.acquired.order && octets.EqualFieldName(name, idempotencyKey):
		return false
	case r.page.fetches && pagekey.Conditional(name), p.replacesTrace(r, name):
		return false
	case octets.EqualFieldName(name, "Accept-Encoding") && p.readsAnswer(r):
		return false
	}
	return r.client.trusted || !octets.FromProxy(name) && !octets.EqualFieldName(name, p.ClientHeader)
}

// readsAnswer reports whether the body of the response will be looked into: compressed it could not be read.
func (p *Proxy) readsAnswer(r *Request) bool {
	switch {
	case r.acquired.order:
		return p.Settlement.ByBody()
	case !r.route.limited() || len(r.buyer.sku) == 0:
		return false
	}
	return p.SoldOutOn.ByBody()
}

// addForwarded says where the request came from. What came with it is extended only for trusted proxies; via tells that
// it came through others.
func (p *Proxy) addForwarded(h *fasthttp.RequestHeader, r *Request, via bool) {
	v := r.scratch.value[:0]
	if r.client.trusted {
		for name, value := range r.head.Fields {
			if octets.EqualFold(name, "X-Forwarded-For") && len(value) > 0 {
				v = append(append(v, value...), ", "...)
			}
		}
	}
	if peer := r.conn.Peer(); peer.IsValid() {
		v = peer.AppendTo(v)
	} else {
		v = append(v, "127.0.0.1"...) // a unix socket: a client on this machine
	}
	h.AddBytesV("X-Forwarded-For", v)
	r.scratch.value = v
	h.AddBytesV("X-Forwarded-Proto", r.scheme())
	if host := r.requestedHost(); len(host) > 0 {
		h.AddBytesV("X-Forwarded-Host", host)
	}
	if via {
		for name, value := range r.head.Fields {
			if octets.EqualFold(name, "Via") {
				h.AddBytesV("Via", value)
			}
		}
	}
	v = append(r.scratch.value[:0], "1.1 "...)
	if r.head.HTTP10 {
		v[2] = '0'
	}
	v = append(v, p.pseudonym...)
	h.AddBytesV("Via", v)
	r.scratch.value = v
}

// newPseudonym is a name for this instance in Via (RFC 9110, section 7.6.3): "sluice-" and 48 random bits.
func newPseudonym() string { return fmt.Sprintf("sluice-%012x", rand.Uint64()>>16) }

// loops reports whether the request has come through this instance before.
func (p *Proxy) loops(r *Request) bool {
	for name, value := range r.head.Fields {
		if octets.EqualFold(name, "Via") && bytes.Contains(value, p.pseudonym) {
			return true
		}
	}
	return false
}

// addLines adds header lines, each with its CRLF.
func addLines(h *fasthttp.RequestHeader, lines []byte) {
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, crlf)
		name, value := octets.Cut(line, ':')
		h.AddBytesKV(name, octets.Trim(value))
	}
}

var crlf = []byte("\r\n")

// addLength frames a body of n bytes.
func (r *Request) addLength(n int64) {
	r.scratch.value = strconv.AppendInt(r.scratch.value[:0], n, 10)
	r.ctx.Request.Header.AddBytesV("Content-Length", r.scratch.value)
}

var schemeHTTP, schemeHTTPS = []byte("http"), []byte("https")

// scheme is the scheme that the client has used.
func (r *Request) scheme() []byte {
	if r.client.trusted {
		if said := r.head.Peek("X-Forwarded-Proto"); len(said) > 0 {
			return said
		}
	}
	if r.conn.Secure() {
		return schemeHTTPS
	}
	return schemeHTTP
}

// requestedHost is the host that the client has asked for.
func (r *Request) requestedHost() []byte {
	if r.client.trusted {
		if said := r.head.Peek("X-Forwarded-Host"); len(said) > 0 {
			return said
		}
	}
	return r.head.Host()
}

// namedByConnection lists the fields that Connection declares to be about this connection alone, comma-separated.
func (r *Request) namedByConnection() []byte {
	if !r.head.Named { // nearly always
		return nil
	}
	r.scratch.text = r.scratch.text[:0]
	for name, value := range r.head.Fields {
		if octets.NamesFields(name, value) {
			r.scratch.text = append(append(r.scratch.text, value...), ',')
		}
	}
	return r.scratch.text
}
