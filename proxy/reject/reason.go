// Package reject answers requests that are not forwarded. It holds the one list of reasons, the one table of what each
// of them is answered with, and the texts, pages and languages. The response, the access log and the metric label of a
// rejection all come from here, so that they cannot disagree.
// It decides nothing: whether a request is rejected is the business of package proxy.
package reject

// Reason says why a request was refused. It is one enumeration: the answer, the log line and
// the metric label all come from it, so that they can never disagree.
type Reason uint8

// The reasons, in the order of the ladder: the connection's first, the shop's last.
const (
	Admitted        Reason = iota // not refused
	Malformed                     // not HTTP/1.1 as it must be; the kind is counted by itself
	ConnOpen                      // limits.connection.max_open
	IPConns                       // limits.connection.max_open_per_ip
	ConnRate                      // limits.connection.rate
	DeniedIP                      // limits.deny
	NoRoute                       // no route takes it
	TooLarge                      // a body over server.max_body_size
	TooSlow                       // the request did not arrive within server.read_timeout
	BadRequest                    // the SKU or user that the route names is missing or malformed
	Ambiguous                     // the gate and the shop could read the request differently
	Unidentified                  // nothing that the shop has signed says who the user is
	Token                         // the order lacks the token of its user, SKU and time
	NotStarted                    // the sale has not begun
	Ended                         // the sale is over
	Paused                        // an operator paused the sale
	SoldOut                       // no unit is free
	UnknownSKU                    // the SKU has no stock key
	Rate                          // a keyed rate
	Window                        // the 10 ms window is full
	Concurrency                   // too many requests inside the shop, and the queue is full
	QueueTimeout                  // waited for a place in the shop for longer than queue_timeout
	ClientGone                    // had left before its turn came; nobody hears this answer
	Confirmed                     // this very order was placed before: its outcome is told once more
	Duplicate                     // the user has bought already
	InProgress                    // the same order is under way
	KeyReused                     // an Idempotency-Key with other content
	Released                      // the reservation was given back before
	StockError                    // Redis cannot say, and on_error is refuse
	NoUpstream                    // no target could be reached; nothing was sent
	ShuttingDown                  // this instance drains
	UpstreamError                 // the shop's answer is broken or missing: outcome unknown
	UpstreamTimeout               // the shop's answer is late: outcome unknown
	Internal                      // a fault of the gate's own: a panic that was caught
	NumReasons
)
