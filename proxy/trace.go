package proxy

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
