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

const (
	maxKey      = 128
	maxQuantity = 1_000_000_000
)

// validKey reports whether a client's Idempotency-Key can be a serial: 1 to 128 visible ASCII bytes, and no segment of a
// path that means another place, since the shop may be asked for the order by its URL.
func validKey(b []byte) bool {
	if len(b) == 0 || len(b) > maxKey || string(b) == "." || string(b) == ".." {
		return false
	}
	for _, c := range b {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// readQuantity reads 1 to most (0 = no bound of its own), in digits alone.
func readQuantity(b []byte, most int64) (int64, bool) {
	if len(b) == 0 || len(b) > 10 || b[0] == '0' {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, n <= maxQuantity && (most == 0 || n <= most)
}
