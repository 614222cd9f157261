package proxy

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"sluice/internal/octets"
)

// forwards reports whether a header line may travel on. named are the fields that Connection declares to be about the
// connection alone.
func (p *Proxy) forwards(r *Request, name, named []byte) bool {
	switch {
	case !octets.EndToEnd(name), len(named) > 0 &&
		octets.HasToken(named, name), octets.EqualFieldName(name, p.RequestIDHeader):
		return false
	case r.acquired.order && octets.EqualFieldName(name, idempotencyKey):
		return false
	case r.page.fetches && (octets.EqualFold(name, "If-None-Match") || octets.EqualFold(name, "If-Modified-Since")):
		return false // a fetch for all needs the content whole
	case p.replacesTrace(r, name):
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
		return p.Outcomes.ByBody()
	case !r.route.limited() || len(r.buyer.sku) == 0:
		return false
	}
	return p.SoldOutOn.ByBody()
}

// appendForwardedFor says where the request came from. What came with it is extended only for trusted proxies.
func (r *Request) appendForwardedFor(b []byte) []byte {
	b = append(b, "X-Forwarded-For: "...)
	if r.client.trusted {
		for name, value := range r.head.Fields {
			if octets.EqualFold(name, "X-Forwarded-For") && len(value) > 0 {
				b = append(append(b, value...), ", "...)
			}
		}
	}
	if peer := r.conn.Peer(); peer.IsValid() {
		b = peer.AppendTo(b)
	} else {
		b = append(b, "127.0.0.1"...) // a unix socket: a client on this machine
	}
	return append(b, "\r\n"...)
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
	return r.head.Host
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
