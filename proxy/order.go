package proxy

import "time"

// Orders takes units of stock before orders are forwarded, and is told what became of each. Times are monotonic
// nanoseconds of the caller's clock.
type Orders interface {
	// Closed answers from memory alone, at once: what is decided about o already. It reports false when Take must be
	// asked.
	Closed(now int64, o Order) (Taken, bool)

	// Take asks for the units of o. It may wait, within a bound. Only an order that hears Admitted may be forwarded,
	// and once; it must be settled once.
	Take(now int64, o Order) Taken

	// Settle tells what became of an order that Take admitted. It does not wait for whoever keeps the stock.
	Settle(sku []byte, serial string, f Fate)

	// State tells what is known of a serial, of any SKU where sku is empty: Admitted, or why it cannot be told.
	State(now int64, sku, serial []byte) (OrderState, Reason)
}

// Order is one attempt to buy. Its bytes belong to the request.
type Order struct {
	SKU      []byte
	User     []byte // empty = nobody is identified
	Key      []byte // the client's Idempotency-Key; empty = it sent none
	Quantity int64  // 1 or more
}

// Taken is the answer to an order.
type Taken struct {
	Reason   Reason        // Admitted: the units are held for it
	Serial   string        // by which the order is known from now on; "" = it is not known
	Deadline int64         // Unix ms until which the units are held
	Wait     time.Duration // until another attempt is worth it; 0 = the reason's class knows
}

// Fate is what became of an order that was held.
type Fate uint8

const (
	Dropped Fate = iota // certainly no order: its units go back
	Placed              // the shop has it: its units are sold
	Unsure              // nobody knows yet: its units stay held
)

// OrderState is what is known of a serial.
type OrderState struct {
	SKU      string
	State    string // "held" "confirmed" "released" "refunded"; "none" = nobody knows it
	Deadline int64  // Unix ms, of "held"
}
