package metrics

import "encoding/hex"

// Tracer records some of the forwarded requests. Its methods wait for nothing outside of memory and are safe for
// concurrent use.
type Tracer interface {
	// Begin decides whether a request that is about to be forwarded is traced. parent is the traceparent (W3C Trace
	// Context) that a trusted proxy sent; empty = none. Begin keeps no slice of it.
	Begin(parent []byte) (Trace, bool)

	// End records a traced request. It keeps no slice of r.
	End(t Trace, r AccessRecord)
}

// Trace is the place of a request in a trace.
type Trace struct {
	ID       [16]byte
	Parent   [8]byte // the caller's span; zeros = none
	Span     [8]byte // the request at Sluice
	Upstream [8]byte // the request at the upstream; it is sent there as the parent
}

// AppendTraceparent appends the header line that tells the upstream its place in the trace, with its CRLF (W3C Trace
// Context, section 3.2).
func AppendTraceparent(dst []byte, t *Trace) []byte {
	dst = append(dst, "traceparent: 00-"...)
	dst = hex.AppendEncode(dst, t.ID[:])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, t.Upstream[:])
	return append(dst, "-01\r\n"...)
}
