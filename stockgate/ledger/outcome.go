package ledger

func valid(o *Order) bool {
	return o.Quantity >= 1 && o.Quantity <= MaxQuantity && len(o.Request) <= MaxRequest &&
		(len(o.Key) == 0 || ValidSerial(o.Key))
}

// mayRepeat reports whether the order may repeat one that has won, where its SKU is in state: it has a name by which
// that could be found. Before the start of a sale an order without a key is new.
func (r *core) mayRepeat(o *Order, state State) bool {
	return len(o.Key) > 0 || r.namedByUser(o) && state != Waiting
}

// namedByUser reports whether o has a serial of its user. Where users may have any number of units, each request
// without a key is an order of its own.
func (r *core) namedByUser(o *Order) bool {
	return len(o.Key) == 0 && len(o.User) > 0 && r.live.Load().perUser > 0
}

// mostLookups is how many orders may wait for a look-up before this one. A key asks to hear of the order that it names;
// a user is, in a crowd, most likely one who has none.
func mostLookups(o *Order) int64 {
	if len(o.Key) > 0 {
		return lookupSize
	}
	return userLookups
}

// What the reserver itself says of an order, beside the codes of the protocol.
const (
	// Overloaded: the order was not tried, since too many orders wait or it waited for too long. It is certain that
	// nothing was done. A later attempt may find another answer.
	Overloaded Code = -100

	// Unsure: the order was tried and the result is unknown. It must not be forwarded. If a unit was reserved for it,
	// the reserver gives that unit back once the store can be asked.
	Unsure Code = -101

	// Invalid: the quantity is not within 1 to MaxQuantity, ValidSerial rejects the key, or the request is too long.
	Invalid Code = -102

	// Undecided: too few units are free, but enough of them are held. Some may come back, so this
	// is not sold out. A later attempt may find another answer.
	Undecided Code = -103

	// passOn: a look-up alone cannot answer the order.
	passOn Code = -104
)

// Outcome is the reserver's answer to one order.
type Outcome struct {
	Code     Code
	State    State  // of the SKU, with the code NotOnSale; Waiting and Over by its hours
	Opens    int64  // Unix ms when it goes on sale, with the state Waiting
	Serial   string // of the order; "" when the answer did not need one
	Deadline int64  // Unix ms until which the unit is held, with the code Held

	// Unverified: the SKU is sold out, and there was no capacity to look up whether this order had won before. The
	// client may ask again, or ask for the state of its order.
	Unverified bool

	// LookUp: Cached has no answer, but LookUp may have one, which needs no unit.
	LookUp bool

	cached bool // the sold-out cache says so; the order itself was not looked up
}
