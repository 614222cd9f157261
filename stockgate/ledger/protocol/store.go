// Package protocol has the values of the stock ledger's protocol and the contract of a store.
//
// It promises that all callers mean the same by a code, an operation, a version and a record.
//
// It keeps and calls nothing: it has no state and does no I/O.
package protocol

import (
	"bytes"
	"context"
)

// Code is what the ledger says of one reservation.
type Code int8

// The codes of the protocol.
const (
	Held       Code = 1  // a new hold: forward
	ReplayHeld Code = 2  // this serial is held already: never forward again
	ReplaySold Code = 3  // this serial is confirmed already: the outcome once more
	SoldOut    Code = 0  // too few units are free
	NotOnSale  Code = -1 // the SKU's state is not "on", or it is not yet or no longer within its hours
	UserLimit  Code = -2 // the user holds or has bought as many as one may
	OtherOrder Code = -3 // this serial was used for another user, quantity or cart
	Released   Code = -4 // this serial was released before, or its release came first
	StaleEpoch Code = -5 // the ledger's epoch is another: learn it and the sale, then decide again; nothing was done
	UnknownSKU Code = -6 // there is no ledger for this SKU
)

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

// StockVersion is what every reply carries: how many units were free at a version of an epoch. Of two hints the one
// with the later epoch, then the later version, is the newer. Every call that changes the stock or a record raises
// the version by one. A new ledger begins with a later epoch than the one before it. Without a ledger a hint is zero.
type StockVersion struct {
	Free  int64 // below 0 when more was adopted than there is
	Held  int64 // reserved and undecided: some of them may come back
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
	Frozen State = "frozen" // its history may have been lost: nothing is sold until it is reconciled

	// What a SKU can be without having been put into it. Nothing is sold, as when it is frozen.
	Verifying State = "verifying" // Redis is another process: on again when each instance has found what it has seen
	Lost      State = "lost"      // the ledger that this instance has seen is gone, until an operator makes another
)

// Op is what is done to a reservation after it was made.
type Op string

const (
	Confirm Op = "confirm" // held to sold
	Release Op = "release" // held to free
	Refund  Op = "refund"  // sold to free; held to free too, where the shop cancels before it was confirmed
	Adopt   Op = "adopt"   // the shop's database says that this order exists: sold, even beyond the total
)

// Done is what an Op came to.
type Done int8

const (
	Changed     Done = 1  // it was done now, or a tombstone was left
	Already     Done = 2  // it had been done before; release of what is released or refunded
	WasReleased Done = -4 // confirm or refund of what was released: the shop must cancel it
	WasSold     Done = -7 // release of what is sold: rejected, use Refund
	NotFound    Done = -8 // confirm or refund of an unknown serial
	Oversold    Done = 4  // adopted, and now more is sold than there is: an alarm
	NoLedger    Done = -6 // there is no ledger for this SKU
)

// Record is one reservation.
type Record struct {
	Serial   string
	User     string
	Quantity int64  // 0 of a tombstone whose release came first
	Cart     string // as in Item; AnyCart where it is not known
	Status   byte   // 'H' held, 'C' confirmed, 'X' released, 'R' refunded
	Deadline int64  // Unix ms: until when it is held before the resolver looks; of 'X', 'R' when it may be forgotten
}

// AnyCart is the cart of an order that was told from outside, with no word about its other lines: adopted, or put back
// from a database. It agrees with every cart.
const AnyCart = "?"

// Stock is a SKU's ledger in numbers. Free is total − held − sold, derived and never stored.
type Stock struct {
	StockVersion
	Total int64
	Sold  int64
	Limit int64  // units a person; 0 = no limit
	Why   string // why it is frozen: operator, mark, version, silent, echo, missing; paid = why it has ended; else ""

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
	Err   error
}

// Store is where ledgers are kept: a Redis or a Memory, under one contract. Times are Unix milliseconds; no store has
// a clock that decides anything. Every call may be repeated after an error: what was done by the first is found by
// the second. A SKU has 1 to 256 bytes, none of them a brace, a batch 1 to 256 items, a number at most 15 digits.
type Store interface {
	// Reserve asks for items of one SKU in order, in one step, and fills codes. epoch 0 = whatever it is, in the first
	// sale of the SKU: a caller that knows no epoch does not know the sale either, from which serials come. For each it
	// looks at the epoch, then the record of the serial, whether the SKU is on sale, the free units, the user's limit.
	// After ErrFewReplicas the answers are there as well, but what is held could still be lost.
	Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []Item, codes []Code) (StockVersion, error)

	// Finish does op to each of items in order, and fills done. It is idempotent by serial. User and Quantity of an
	// item are needed for Adopt alone, and of what is held its own ones stand; a release of an unknown serial leaves a
	// tombstone until keep. The state of the SKU does not matter: what was sent is always settled.
	Finish(ctx context.Context, sku string, now, keep int64, op Op, items []Item, done []Done) (StockVersion, error)

	// Sweep leases at most limit overdue holds until lease, forgets tombstones whose time has come, and returns the
	// holds, the oldest first. limit is 1 to 1,000; at most 2,000 tombstones more than that are looked at.
	Sweep(ctx context.Context, sku string, now, lease int64, limit int) ([]Record, error)

	// SweepAll sweeps several ledgers at once, at most 64, a little of each: mostly nothing is due. What it finds comes
	// back by position.
	SweepAll(ctx context.Context, skus []string, now, lease int64) []Swept

	// FindAll looks several serials up at once, at most 512, of any SKUs. What it finds comes back by position. A ledger
	// that may have lost a serial does not say that there is none: that is an error.
	FindAll(ctx context.Context, orders []OrderName) []Found

	// Find looks a serial up; ok is false for an unknown one.
	Find(ctx context.Context, sku, serial string) (r Record, ok bool, err error)

	// ReadStock reads the numbers; ok is false when there is no ledger.
	ReadStock(ctx context.Context, sku string) (s Stock, ok bool, err error)

	// SetTotal makes the ledger, which is then on sale, or changes its total; less than held + sold is an error that
	// names both. limit is what one person may have; 0 = no limit; KeepLimit = as it is, and without a ledger that is
	// ErrUnknownSKU, since how many a person may have is not to be guessed. To make a SKU that goes on sale later, make
	// it with no units, set its hours, and then its total. Where a ledger was before and is gone it is ErrLost.
	SetTotal(ctx context.Context, sku string, total, limit int64) (Stock, error)

	// Create makes the ledger, with its hours, where there is none; made is false where there is one, which stays as it
	// is. One that is known to have been lost is ErrLost.
	Create(ctx context.Context, sku string, o Opening) (s Stock, made bool, err error)

	// SetState opens, pauses, ends or freezes; freezing raises the epoch, each time, but where a later one was seen
	// on another server: then opening does. Without a ledger it is ErrUnknownSKU.
	SetState(ctx context.Context, sku string, state State) (Stock, error)

	// Add changes the total by delta, which is not 0. A total that would be less than held + sold is an error that
	// names both. id, 1 to 128 visible ASCII bytes, lets it be repeated: of the last 100 ids each changes the total
	// once, and one that was used for another delta is ErrOtherDelta. "" = each call counts. Without a ledger it is
	// ErrUnknownSKU.
	Add(ctx context.Context, sku string, delta int64, id string) (Stock, error)

	// SetSchedule says from when until when the SKU is on sale, in Unix ms; 0 = no such bound. Outside of them a reserve
	// is NotOnSale by the time that its caller gives. Without a ledger it is ErrUnknownSKU.
	SetSchedule(ctx context.Context, sku string, opens, closes int64) (Stock, error)

	// SKUs returns the first SKUs that have a ledger, in the order of their bytes. limit is 1 to 100,000.
	SKUs(ctx context.Context, limit int) ([]string, error)

	// Records shows see the records of a SKU until it returns false: each that is there during the whole call, and
	// perhaps others that came or went meanwhile; in no order, one of them perhaps more than once. There are at most as
	// many as units in all, and tombstones. see must not call the store.
	Records(ctx context.Context, sku string, see func(Record) bool) error
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
