package proxy

import (
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/limiter"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
	"sluice/upstream"
)

// All times that the neighbours are given are monotonic nanoseconds of the caller's clock. Slices belong to the
// request: no method keeps one.

// Upstream is the protected backend. It sends each request at most once.
type Upstream interface {
	// Acquire takes a connection for req before it is sent, and waits for one as Send does. It reports false when none
	// came free in time. A request that is not sent after true must be given to Release.
	Acquire(req *upstream.Request) bool

	// Release gives back what Acquire took, unless the request was sent.
	Release(req *upstream.Request)

	// Send writes req to one target and reads the response into resp. Whatever it returns, an order of which one byte
	// was written is never written again, by it or by its caller.
	Send(req *upstream.Request, resp *fasthttp.Response) upstream.Outcome

	// Upgrade is Send for a request that asks to leave HTTP (RFC 9110, section 7.8). If the upstream answers 101, the
	// connection is the caller's, who must close it; otherwise it is nil, and the response is an ordinary one.
	Upgrade(req *upstream.Request, resp *fasthttp.Response) (net.Conn, upstream.Outcome)
}

// ConnRateLimiter is the request rate of one connection.
type ConnRateLimiter interface {
	// Allow counts one request at t; when it is rejected, wait tells how long until one is allowed.
	Allow(t time.Time) (wait time.Duration, ok bool)
}

// WindowLimiter limits what is admitted in one window of limits.window.size (10 ms): of all SKUs together, and of one.
type WindowLimiter interface {
	// Acquire books one unit at now. The caller sleeps for wait, then goes on; when it is rejected, nothing was booked
	// and wait tells when to come back.
	Acquire(now int64, sku []byte) (wait time.Duration, ok bool)

	// Peek books nothing. It tells whether Acquire would reject, and when to come back.
	Peek(now int64, sku []byte) (wait time.Duration, full bool)
}

// ConcurrencyLimiter limits how many requests the upstream has at the same time.
type ConcurrencyLimiter interface {
	// Acquire waits for a slot, within a bound: Admitted, Concurrency, QueueTimeout, or ClientGone when client had left
	// before its turn came. Of the requests that wait those with first go before the others.
	Acquire(client limiter.Client, first bool) reject.Reason

	// TryAcquire takes a slot where one is free for which no one waits.
	TryAcquire() bool

	// Peek tells whether Acquire would reject at once, since the queue is full. It writes nothing.
	Peek(first bool) (full bool)

	// Release gives the slot back. took is how long the upstream had the request, 0 where it never got it.
	Release(took time.Duration)
}

// Stock is what may be asked about a SKU.
type Stock interface {
	// Closed answers from memory alone, at once: the reason why sku cannot be bought at now, or Admitted when it may be
	// or when nothing is known of it yet.
	Closed(now int64, sku []byte) reject.Reason

	// AwaitReading is Closed, but waits, within a bound, where nothing is known yet of a SKU, or no longer: then it calls
	// StepAside first. It is Admitted where no reading came, and Concurrency where too many wait for one.
	AwaitReading(now int64, sku []byte, on interface{ StepAside() }) (reason reject.Reason, waited bool)

	// Enter decides for one request of user, who is empty where the route identifies no user. It may wait, within a
	// bound, for the first reading of a SKU and for what is known of user. Each request that was Admitted must call
	// Leave once when the upstream has answered.
	Enter(now int64, sku, user []byte) reject.Reason

	// EnterAtOnce is Enter where memory decides; else it reports false and has done nothing.
	EnterAtOnce(now int64, sku, user []byte) (reason reject.Reason, known bool)

	// Leave ends what Enter admitted.
	Leave(sku []byte)
}

// Orders reserves units of stock before orders are forwarded, and is told what became of each.
type Orders interface {
	// Decided answers from memory alone, at once, what is known about o already. It reports false when Reserve must be
	// asked, or LookUp before it, if the Reservation says so.
	Decided(now int64, o ledger.Order) (Reservation, bool)

	// LookUp finds out whether o has won before, for a SKU of which nothing is left. It may wait, within a bound, and
	// reserves nothing. It reports false when Reserve must be asked.
	LookUp(now int64, o ledger.Order) (Reservation, bool)

	// Reserve asks for the units of o. It may wait, within a bound. Only an order that is Admitted may be forwarded,
	// once; it must be settled once.
	Reserve(now int64, o ledger.Order) Reservation

	// Settle tells what became of an order that Reserve admitted, of all its lines. It does not wait for the store, but
	// for room where too many wait for the store.
	Settle(o ledger.Order, serial string, outcome metrics.OrderOutcome)

	// State tells what is known of a serial, of any SKU where sku is empty: Admitted, or why it cannot be told.
	State(now int64, sku, serial []byte) (OrderState, reject.Reason)
}

// Reservation is the answer to an order.
type Reservation struct {
	Reason   reject.Reason // Admitted: the units are held for it
	Serial   string        // by which the order is known from now on; "" = it is not known
	Deadline int64         // Unix ms until which the units are held
	Wait     time.Duration // until another attempt is worth it; 0 = the reason's class knows
	SKU      []byte        // of More: the line that the reason is about; nil = the SKU of the order
	Refunded bool          // of Released: it was placed, and cancelled later
	ByKey    bool          // Serial is the key that this client has chosen and shown
	LookUp   bool          // nothing is decided, but LookUp may answer without a unit
}

// OrderState is what is known of a serial.
type OrderState struct {
	SKU      string
	State    ledger.Status // none = the serial is unknown
	Deadline int64         // Unix ms, while it is held
}

// Schedule knows when SKUs are on sale.
type Schedule interface {
	// Closed tells from memory, at once, whether the schedule or an operator keeps sku from being sold at now: NotStarted
	// and for how long yet, Ended, Paused; or Admitted. Where early requests may pass to the upstream, they are Admitted
	// unless reserved: an order that takes stock here is never early.
	Closed(now int64, sku []byte, reserved bool) (reason reject.Reason, wait time.Duration)
}

// Availability answers public questions about a SKU's stock from memory. It never blocks on Redis.
type Availability interface {
	// Status tells what is known of sku at now (monotonic ns). It does not keep sku.
	Status(now int64, sku []byte) StockStatus

	// Time is now as Unix milliseconds of the clock that all instances share.
	Time(now int64) int64
}

// SoldOutFeedback is what the upstream's own responses have taught.
type SoldOutFeedback interface {
	// SoldOut tells from memory, at once, whether the upstream has said lately that sku is sold out.
	SoldOut(now int64, sku []byte) bool

	// Record notes that the upstream says so. reserved: it says so of an order for which units were reserved.
	Record(now int64, sku []byte, reserved bool)
}
