package ledger

import (
	"bytes"
	"crypto/rand"
	"errors"
)

// Code is what the ledger says of one reservation.
type Code int8

// The codes of the protocol.
const (
	Held       Code = 1  // a new hold: forward
	ReplayHeld Code = 2  // this serial is held already: never forward again
	ReplaySold Code = 3  // this serial is sold already: the outcome once more
	SoldOut    Code = 0  // too few units are free
	NotOnSale  Code = -1 // the SKU's state is not "on", or it is not yet or no longer within its hours
	UserLimit  Code = -2 // the user holds or has bought as many as one may
	OtherOrder Code = -3 // this serial was used for another user, quantity or cart
	Released   Code = -4 // this serial was released before, or its release came first
	StaleEpoch Code = -5 // the ledger's epoch is another: learn it and the sale, then decide again; nothing was done
	UnknownSKU Code = -6 // there is no ledger for this SKU
	Refunded   Code = -7 // this serial was refunded: it is used up, as a released one is
)

// Order is one attempt to buy. Its bytes belong to the request: what is kept is copied.
type Order struct {
	SKU      []byte
	User     []byte // empty = no user is identified
	Key      []byte // the client's Idempotency-Key, which then is the serial; empty = one is derived
	Quantity int64  // 1 to MaxQuantity
	More     []Line // of an order over several SKUs: those after SKU. Each is reserved, and settled, by itself
	Cart     string // as in Item
	Request  string // waits with the order until it is delivered, see Item; "" = the caller forwards it
}

// Line is one SKU of an order, and how many units of it. The SKU belongs to the request.
type Line struct {
	SKU      []byte
	Quantity int64
}

// Item is one reservation that is asked for.
type Item struct {
	Serial   string // 1 to 128 bytes, visible ASCII where clients choose it
	User     string // "" = no user is identified: no limit for each user; any bytes
	Quantity int64  // 1 to 1,000,000,000

	// Cart is the digest of all lines of an order over several SKUs, of which this is one; "" = the order has no other
	// line. It holds no | and no /.
	Cart string

	// Request of Reserve is what a Queue keeps until the order is delivered, as NewRequest writes it; "" = the order does
	// not wait.
	Request string
}

// StockVersion is what every reply carries: how many units were free at a version of an epoch (hint in the scripts).
// The one with the later epoch, then the later version, is the newer. Every call that changes the stock or a record
// raises the version by one. A new ledger begins with a later epoch than the one before. Without a ledger it is zero.
type StockVersion struct {
	Free  int64 // below 0 when more was adopted than there is
	Held  int64 // undecided: some of them may come back
	Epoch int64
	Ver   int64
	State State

	Opens  int64 // Unix ms from which on it is on sale, where State is on; 0 = it always was
	Closes int64 // Unix ms from which on it is over; 0 = never

	// Sale tells the sales of a SKU apart: 0 in the first one, and in each later one, which begins when the orders of the
	// one before were archived, a greater number. What is reserved in an epoch is of one sale.
	Sale int64
}

// State says whether a SKU is on sale.
type State string

const (
	On     State = "on"
	Paused State = "paused"
	Ended  State = "ended"
	Frozen State = "frozen" // its history may have been lost: nothing is sold until it is recovered

	// What a SKU can be without having been put into it. Nothing is sold, as when it is frozen.
	Verifying State = "verifying" // Redis is another process: on again when each instance has found what it has seen
	Lost      State = "lost"      // the ledger that this instance has seen is gone, until an operator makes another
)

// Op is what is done to a reservation after it was made.
type Op string

const (
	Confirm Op = "confirm" // held to sold
	Release Op = "release" // held to free
	Refund  Op = "refund"  // sold to free; held to free too, where the shop cancels before it was sold
	Adopt   Op = "adopt"   // an operator says, by the shop's books, that this order exists: sold, even beyond the total
)

// Done is what an Op came to.
type Done int8

const (
	Changed     Done = 1   // it was done now, or a tombstone was left
	Already     Done = 2   // it had been done before; release of what is released or refunded
	WasReleased Done = -4  // confirm or refund of what was released: the shop must cancel it
	WasSold     Done = -7  // release of what is sold: rejected, use Refund
	NotFound    Done = -8  // confirm or refund of an unknown serial
	Oversold    Done = 4   // adopted, and now more is sold than there is: an alarm
	NoLedger    Done = -6  // there is no ledger for this SKU
	WasRefunded Done = -11 // confirm of what was given back
)

// Record is one reservation.
type Record struct {
	Serial   string
	User     string
	Quantity int64  // 0 of a tombstone whose release came first
	Cart     string // as in Item; AnyCart where it is not known
	Status   Status
	Deadline int64 // Unix ms: until when it is held before the resolver looks; of a final one when it may be forgotten
}

// AnyCart is the cart of an order that was told from outside, with no word about its other lines: adopted, or put back
// from a database. It agrees with every cart.
const AnyCart = "?"

// Stock is a SKU's ledger in numbers. Free is total − held − sold, derived and never stored.
type Stock struct {
	StockVersion
	Total int64
	Sold  int64
	Limit int64 // units a person; 0 = no limit

	// Why it is frozen: operator, mark, version, silent, echo, missing, settled. paid = why it has ended; else "".
	Why string

	Untold int64 // of a frozen one: instances that have not told all that they know of its orders
}

// OrderName names one order.
type OrderName struct{ SKU, Serial string }

// Found is what FindAll found of one order.
type Found struct {
	Record
	OK   bool  // false = the serial is unknown
	Sale int64 // in which the ledger is: a derived serial of an earlier one is not that of an order of this one
	Err  error
}

// Swept is what SweepAll found in one ledger.
type Swept struct {
	Holds []Record // that were overdue, and are leased now; the oldest first
	More  bool     // is due: Sweep finds it
	Epoch int64    // the latest that this instance has seen
	Err   error
}

// ValidSerial reports whether key can be a serial: 1 to 128 visible ASCII bytes. "." and ".." are rejected as well,
// since a shop that is asked for an order by its URL would be asked for something else, and what begins with \x, since
// the database of the settlement has other bytes so: a shop that gives such an order back would give back another.
func ValidSerial(key []byte) bool {
	if len(key) == 0 || len(key) > MaxSerial || string(key) == "." || string(key) == ".." ||
		bytes.HasPrefix(key, []byte(`\x`)) {
		return false
	}
	for _, c := range key {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// What a SKU is that is on, outside of its hours. Nothing ever keeps these: they follow from the time.
const (
	Waiting State = "waiting" // it opens later
	Over    State = "over"    // it has closed
)

// At is the state at now (Unix ms): that which is kept, unless it is on and the hours say Waiting or Over.
func (h StockVersion) At(now int64) State {
	switch {
	case h.State != On:
		return h.State
	case now < h.Opens:
		return Waiting
	case h.Closes != 0 && now >= h.Closes:
		return Over
	}
	return On
}

// Older reports whether h is older than other.
func (h StockVersion) Older(other StockVersion) bool {
	return version{h.Epoch, h.Ver}.older(version{other.Epoch, other.Ver})
}

// version is one of a ledger.
type version struct{ epoch, ver int64 }

func (v version) older(w version) bool {
	return v.epoch < w.epoch || v.epoch == w.epoch && v.ver < w.ver
}

// Opening is what a ledger begins with.
type Opening struct {
	Total, Limit  int64 // units, and units a person; 0 = no limit
	Opens, Closes int64 // Unix ms; 0 = no such bound
}

func (o Opening) Check(sku string) error {
	if o.Limit == KeepLimit {
		return errors.New("how many a person may have is not said")
	}
	return errors.Join(checkTotal(sku, o.Total, o.Limit), checkSchedule(sku, o.Opens, o.Closes))
}

// Owned is what a ledger says of users.
type Owned struct {
	Units []int64 // by position; nil = it has no ledger
	State State   // of the SKU. The units of one that is frozen, verifying or lost may be more
	Err   error
}

// ErrBacklog is the cause when more changes wait for their consumer than they may.
var ErrBacklog = errors.New("changes wait for their consumer")

// ErrFewReplicas is the cause when it was done, but too few replicas had it in time: a fail-over could undo it.
var ErrFewReplicas = errors.New("too few replicas have it")

// NewSecret makes a secret for a reserver that shares its orders with no other instance.
func NewSecret() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return secret
}
