package metrics

import (
	"encoding/hex"
	"net/netip"
	"time"

	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/upstream"
)

// AccessLogger writes the access log. Its methods wait for nothing outside of memory and are safe for concurrent use.
type AccessLogger interface {
	// Sampled reports whether a rejection at now (monotonic ns) is to be logged. nth is its number among the rejections
	// with its route and reason that were counted by the same shard.
	Sampled(now int64, reason reject.Reason, nth uint64) bool

	// Log logs one request. It keeps no slice of r.
	Log(r AccessRecord)
}

// OrderOutcome is what became of a reservation.
type OrderOutcome uint8

// The outcomes of orders.
const (
	OrderRejected  OrderOutcome = iota // the upstream rejected the order: its units are released
	OrderConfirmed                     // the upstream accepted the order: its units are sold
	OrderUnknown                       // no response tells; the resolver asks status_url, or the deadline decides
	numOrderOutcomes
)

// String is the name in logs.
func (o OrderOutcome) String() string {
	return [numOrderOutcomes]string{"released", "confirmed", "unknown"}[o]
}

// AccessRecord is what became of one request. Its slices belong to the request; its strings last. It has no query, no
// cookie, and of the client's header fields only the request ID. User is a person: it must not be logged as it is.
//
// It has more than 20 fields because it is one line of the access log, which is flat, and is copied once as a whole.
type AccessRecord struct {
	Client netip.Addr // invalid for a client on a Unix socket
	ID     []byte     // the request ID
	Method []byte     // empty when the request was not HTTP or the connection was rejected before
	Path   []byte     // without query and path parameters; the route's pattern where the path names the user
	Route  string     // "" = no route matches
	Gate   route.Gate
	SKU    []byte
	User   []byte // as the route reads it
	Serial string // of the order; "" = not known

	Status   int           // 0 = closed without a response
	Reason   reject.Reason // of the rejection, or Admitted
	Detail   reject.Detail // of Reason
	Observed reject.Reason // why the request would have been rejected outside of observe mode, or Admitted
	Limit    string        // the limit that rejected it, with its size; "" = no limit did
	Wait     time.Duration // after which a retry makes sense; 0 = not known
	Version  string        // of the configuration that decided

	Sent     bool             // the request was forwarded, or its forwarding was tried
	Outcome  upstream.Outcome // if Sent
	Target   string           // the last target that was tried
	Reserved bool             // units were reserved for it
	Order    OrderOutcome     // if Reserved
	Deadline int64            // of the reservation: Unix ms by the clock of the stock's store

	BytesIn, BytesOut int64 // of the bodies: announced or read, and answered; -1 = not known

	// Monotonic ns: the arrival, the decision, the upstream's response and the end of handling. Later bytes of a stream
	// are not part of it.
	Arrived, Decided, Answered, Done int64
}

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
