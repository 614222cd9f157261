package ledger

// Order is one attempt to buy. The desk copies what it keeps: the bytes may belong to a request.
type Order struct {
	SKU      []byte
	User     []byte // empty = nobody is identified
	Key      []byte // the client's Idempotency-Key, which then is the serial; empty = the desk derives one
	Quantity int64  // 1 to mostUnits
}

// What the desk itself says of an order, beside the codes of the protocol.
const (
	// Overloaded: the order was not tried, since too many wait or it waited for too long. It is certain that
	// nothing happened. A later try may find another answer.
	Overloaded Code = -100

	// Unsure: the order was tried and nobody knows what came of it. It must not be forwarded. If a unit was
	// taken for it, the desk gives that unit back once the store can be asked.
	Unsure Code = -101

	// Invalid: the quantity is not within 1 to mostUnits, or ValidSerial refuses the key.
	Invalid Code = -102
)

// Outcome is the desk's answer to one order.
type Outcome struct {
	Code     Code
	State    State  // of the SKU, with the code NotOnSale; Waiting and Over by its hours
	Opens    int64  // Unix ms when it goes on sale, with the state Waiting
	Serial   string // of the order; "" when the answer did not need one
	Deadline int64  // Unix ms until which the unit is held, with the code Held
}

const (
	longestSerial = 128 // bytes
	mostUnits     = 1_000_000_000
)

// ValidSerial reports whether key can be a serial: 1 to 128 visible ASCII bytes. "." and ".." are refused as
// well, since a shop that is asked for an order by its URL would be asked for something else.
func ValidSerial(key []byte) bool {
	if len(key) == 0 || len(key) > longestSerial || string(key) == "." || string(key) == ".." {
		return false
	}
	for _, c := range key {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}
