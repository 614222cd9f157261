// Package reject answers requests that are not forwarded. It promises one list of reasons and one table of what each is
// answered with: the response, the access log and the metric label of a rejection come from here and cannot disagree.
// It also promises that no value of a request leaves its place in an answer, and that an answer allocates nothing.
// It does not decide whether a request is rejected: package proxy does.
package reject

// Reason says why a request was rejected. Its String is the name in answers, logs and metrics.
type Reason uint8

// The reasons, in the order of the checks: those of the connection first, those of the upstream last.
const (
	Admitted        Reason = iota // not rejected
	Malformed                     // not valid HTTP/1.1; the broken rules have a metric of their own
	ConnOpen                      // limits.connection.max_open
	IPConns                       // limits.connection.max_open_per_ip
	ConnRate                      // limits.connection.rate
	DeniedIP                      // limits.deny
	NoRoute                       // no route matches
	TooLarge                      // the body exceeds server.max_body_size
	TooSlow                       // the request did not arrive within server.read_timeout
	BadRequest                    // the SKU, user or quantity that the route names is missing or invalid
	Ambiguous                     // Sluice and the upstream could read the request differently
	Unidentified                  // no valid signature proves the user
	Token                         // the order token for this user, SKU and time is missing or invalid
	NotStarted                    // the sale starts later
	Ended                         // the sale has ended
	Paused                        // an operator paused the sale
	SoldOut                       // no unit is free
	UnknownSKU                    // the SKU has no stock key
	Rate                          // a keyed rate limit
	Window                        // the 10 ms window is full
	Concurrency                   // the concurrency limit and its queue are full
	QueueTimeout                  // the request waited longer than queue_timeout for a slot
	ClientGone                    // the client closed its connection before it had a slot; no client reads this answer
	Confirmed                     // this very order was placed before; the answer repeats its outcome
	Duplicate                     // the user has bought already
	InProgress                    // the same order is being processed
	KeyReused                     // the Idempotency-Key belongs to an order with other content
	Released                      // the reservation was released before
	StockError                    // Redis does not answer, and on_error is "refuse"
	NoUpstream                    // no target is reachable; nothing was sent
	ShuttingDown                  // this instance drains
	UpstreamError                 // the upstream's response is broken or missing: the outcome is unknown
	UpstreamTimeout               // the upstream's response is late: the outcome is unknown
	Internal                      // a panic in Sluice was caught
	NumReasons
)

// String is the name in answers, logs and metrics.
func (r Reason) String() string { return table[r].name }

// Class is the group of reasons whose answer the configuration sets together.
func (r Reason) Class() Class { return table[r].class }

// ClosesConnection reports that the connection cannot be used after the answer. A request with such a reason cannot be
// forwarded in observe mode either.
func (r Reason) ClosesConnection() bool { return table[r].flags&closes != 0 }

// MayHaveOrder reports a rejection that may concern an order whose state the client can ask for.
func (r Reason) MayHaveOrder() bool { return table[r].flags&hasOrder != 0 }

// OutcomeUnknown reports that the request was sent and that no response tells whether the upstream placed an order.
func (r Reason) OutcomeUnknown() bool { return table[r].class == upstreamClass }

// mayHavePlaced reports that this very request may have placed an order.
func (r Reason) mayHavePlaced() bool { return table[r].flags&maybePlaced != 0 }

// orderMessage is what the reason alone tells about the order. "Your order was not placed and you were not charged" is
// what a rejected client wants to read first, and must not read unless it is true.
func (r Reason) orderMessage() message {
	switch {
	case r.mayHavePlaced():
		return unknownYet
	case table[r].flags&earlier != 0:
		return oneOnly
	}
	return notOrdered
}
