package proxy

import "encoding/hex"

// Tracer is told of some of the requests that are forwarded. Neither of its methods waits for anything outside of memory.
type Tracer interface {
	// Begin decides whether a request is traced that is about to be forwarded. parent is the traceparent (W3C Trace
	// Context) that a trusted proxy sent, empty when there is none. Begin keeps no slice of it.
	Begin(parent []byte) (Trace, bool)

	// End takes what became of a request that is traced. It keeps no slice of e.
	End(t Trace, e Entry)
}

// Trace is a request's place in a trace.
type Trace struct {
	ID     [16]byte
	Parent [8]byte // the span that it came from; zeros = none
	Span   [8]byte // the request at the gate
	Shop   [8]byte // the request at the shop, which is told of it
}

// trace asks the tracer. What an untrusted client says of traces is not believed: it would choose what is sampled.
func (p *Proxy) trace(r *request) {
	var parent []byte
	if r.conn.trusted {
		parent, _ = r.header(traceparent)
	}
	r.trace, r.traced = p.tracer.Begin(parent)
}

const (
	traceparent = "Traceparent"
	tracestate  = "Tracestate"
)

// replaced reports whether a field speaks of traces and does not travel on. Without a tracer all of them do.
func (p *Proxy) replaced(r *request, name []byte) bool {
	if p.tracer == nil {
		return false
	}
	return !r.conn.trusted && (equalFold(name, traceparent) || equalFold(name, tracestate)) ||
		r.traced && equalFold(name, traceparent)
}

// appendTrace appends where the shop stands in the trace (W3C Trace Context, section 3.2).
func appendTrace(dst []byte, t *Trace) []byte {
	dst = append(dst, "traceparent: 00-"...)
	dst = hex.AppendEncode(dst, t.ID[:])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, t.Shop[:])
	return append(dst, "-01\r\n"...)
}
