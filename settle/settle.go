// Package settle brings what the stock ledgers have decided into a database: every order once, in the ledger's order.
//
// It promises that an order is booked and its units are deducted exactly once, whatever dies between, and that two
// settlers of the same SKU never apply a change twice. The cursor of a SKU lies in the database and moves in the
// transaction that has the effect. A webhook has a cursor of its own, and gets every change at least once. An entry is
// trimmed from the ledger's stream only after every target has settled it.
//
// It does not decide about orders, or serve requests. It raises a ledger's free units only by the shop's word
// (giveback.go). It ends a SKU, or puts it on sale again, only by what is paid (paid.go). The gateway never opens the
// database.
package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/stockgate/ledger"
)

// The targets. Each has a cursor of its own for each SKU.
const (
	OrdersTarget  = "orders" // orders and stock, in the database
	WebhookTarget = "webhook"
)

// The causes by which a Database tells a settler how to go on. Any other error is a fault of the machine: the settler
// tries again.
var (
	// ErrElsewhere means that another settler works on the SKU, or has moved its cursor. Nothing was written.
	ErrElsewhere = errors.New("another settler has moved the cursor")

	// ErrData means that the database will never store this as it is. Nothing was written.
	ErrData = errors.New("the database cannot store this")

	// ErrShopRow means that rows of the shop's orders cannot be read. The others were compared.
	ErrShopRow = errors.New("correct it, or leave it out of the query")
)

// PostponedError is a fault of a target that decides itself when it is tried again.
type PostponedError struct {
	Wait time.Duration
	Err  error
}

func (e *PostponedError) Error() string { return e.Err.Error() }
func (e *PostponedError) Unwrap() error { return e.Err }

// Position is the id of an entry of a ledger's stream. The zero Position is before all of them.
type Position struct{ Epoch, Ver int64 }

// Before reports whether p is the id of an earlier entry than q.
func (p Position) Before(q Position) bool {
	return p.Epoch < q.Epoch || p.Epoch == q.Epoch && p.Ver < q.Ver
}

// String is the id as Redis writes it.
func (p Position) String() string { return fmt.Sprintf("%d-%d", p.Epoch, p.Ver) }

// Fingerprint is the beginning of the SHA-256 of an entry. Redis gives ids again when it has lost its tail.
type Fingerprint [8]byte

// Numbers are a ledger's numbers after an entry.
type Numbers struct {
	Total, Held, Sold int64
	State             string
}

// Cursor is how far the database is with one ledger.
type Cursor struct {
	Position
	Numbers
	Born        int64 // the first epoch of the ledger: a SKU that is sold again has another ledger
	Fingerprint Fingerprint
	Deducted    int64 // units that the stock table was lowered by for this ledger
	Moves       int64 // how often the SKU had been moved between homes
}

// SamePosition reports whether both are at the same entry of the same ledger.
func (c Cursor) SamePosition(d Cursor) bool {
	return c.Position == d.Position && c.Fingerprint == d.Fingerprint && c.Born == d.Born
}

// Record is an order as a change has left it.
type Record struct {
	Position        // of the change
	Serial   string // 1 to 128 bytes
	User     string // any bytes
	Quantity int64
	Status   ledger.Status
	At       int64 // Unix ms; 0 = not known
	Missing  bool  // only the database knows it
	Deducted int64 // units by which it has lowered the stock; of rows alone

	// Anew is the change since which it is not what was released or refunded before under its serial: an operator has
	// adopted it then, or the ledger has held it anew then. Zero = not known.
	Anew Position
}

// Replaces reports whether a row may become r. A row that was released or refunded becomes held or sold only where the
// order began anew since, or where the ledger has forgotten by now what was before: forgotten, Unix ms, is when it had
// been released then. whole says that r is of a ledger that is read whole: what it holds, the shop may still have.
func (r Record) Replaces(row Record, whole bool, forgotten int64) bool {
	return !row.Status.Final() || r.Status.Final() || row.Position.Before(r.Anew) || 0 < row.At && row.At < forgotten ||
		whole && row.Status == ledger.StatusReleased && r.Status == ledger.StatusHeld
}

// Counted is how many units of the stock the record uses up.
func (r Record) Counted() int64 {
	if r.Status == ledger.StatusSold {
		return r.Quantity
	}
	return 0
}

// Conflict is a difference that an operator must look at. A second one of the same kind at the same place is added to
// the first one, which is open again then.
type Conflict struct {
	ID  int64 // of the database; 0 = it is new
	SKU string
	Position
	Kind   string // "stock" "entry" "missing" "lost" "giveback" "difference" "extra"
	Detail string // valid UTF-8
	Entry  string // of kind "entry": all its fields, each quoted with escapes
}

// Batch is the content of one transaction for one SKU.
type Batch struct {
	SKU       string
	From      *Cursor // where the cursor must be; nil = there must be none
	To        Cursor  // Deducted is not read
	Entries   []Entry // that follow From, as they are; none if Whole
	Records   []Record
	Whole     bool  // Records are all records of the ledger; orders that are not among them become missing
	Forgotten int64 // Unix ms: what was released or refunded before, a ledger may have forgotten
	Archived  bool  // of a whole one: the ledger began when the one before was archived, and has adopted none of its orders
	Conflicts []Conflict
	Solved    int64 // a conflict that is solved by this batch; 0 = none
}

// Outcome is what a transaction has changed.
type Outcome struct {
	Cursor  Cursor // as it is now
	Units   int64  // deducted, or returned if below 0
	Missing int64  // orders that have become missing
	Parked  int64  // orders that the database rejects: a conflict has them
	Short   bool   // the stock table did not take it, or more is booked than the total: a conflict was written
}

// Database is where orders are settled. Every call is one transaction, but for Settle of a webhook.
type Database interface {
	// Cursor reads the cursor of a SKU; ok is false when there is none.
	Cursor(ctx context.Context, sku string) (c Cursor, ok bool, err error)

	// Cursors reads where all cursors are: Born, Position and State.
	Cursors(ctx context.Context) (map[string]Cursor, error)

	// Settle writes the batch if the cursor is still at From. Records that can never be stored are parked in a conflict,
	// and the others are written; those of a solved conflict are not parked again. Its error wraps ErrElsewhere or
	// ErrData where that is the cause.
	Settle(ctx context.Context, b Batch) (Outcome, error)

	// Orders shows see the orders of one ledger, sorted by serial.
	Orders(ctx context.Context, sku string, born int64, see func(Record)) error

	// Settled returns up to where every target has settled a SKU; zero if one of them has not begun.
	Settled(ctx context.Context, sku string) (Position, error)

	// Report writes conflicts.
	Report(ctx context.Context, conflicts ...Conflict) error
}
