package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/stockgate/ledger"
)

// errMoving means that a SKU could not be compared, since its ledger changed all the time.
var errMoving = errors.New("it changes all the time, or is not settled yet; try again at a quiet moment; " +
	"/readyz?verbose of sluice-settle run says what is not settled, and why")

const (
	compareTries   = 20
	maxDifferences = 100 // that are shown
)

// Difference is an order that ledger and database know differently at one position.
type Difference struct {
	Serial   string
	Ledger   string // "sold 2 of alice"; "" = not known
	Database string
}

// Comparison is the result of Verify.
type Comparison struct {
	SKU         string
	At          Position
	Records     int // compared
	Differences []Difference
	More        int   // differences beyond the first 100
	Sold        int64 // units, by the ledger's numbers
	Booked      int64 // units of the sold orders in the database
	Deducted    int64 // units by which the stock table was lowered

	ledger   Ledger
	born     int64
	lost     int // of the differences: the ledger is to be told
	final    int // of the differences: the database has the order as released, which an operator alone turns back
	unproven int // of the differences: to follow the ledger would return units that nothing shows to be free
}

// Equal reports whether nothing differs.
func (c Comparison) Equal() bool {
	return len(c.Differences) == 0 && c.Sold == c.Booked && c.Deducted == c.Booked
}

// healed reports whether nothing is left of a loss: the SKU is open, and both books say the same of every order.
func (c Comparison) healed() bool {
	return len(c.Differences) == 0 && c.Sold == c.Booked && c.ledger.State != frozen
}

// Verify compares the orders of a SKU in Redis and in the database at one position, so that a difference is no lag. It
// writes nothing. ok is false if the SKU has neither a ledger nor a cursor.
func Verify(ctx context.Context, stream Stream, db Database, sku string) (c Comparison, ok bool, err error) {
	for range compareTries {
		c, found, err := compareOnce(ctx, stream, db, sku, nil)
		if err != nil || found == absent || found == compared {
			return c, found == compared, err
		}
	}
	return c, false, fmt.Errorf("verify %q: %w", sku, errMoving)
}

// sight is what became of one try to compare.
type sight int

const (
	absent   sight = iota // there is neither a ledger nor a cursor
	lagging               // the database is not where the ledger is
	moving                // the ledger has changed while it was read
	compared              // at one position
)

// compareOnce tries to compare once. explained tells which rows are no difference; nil = none. r is the ledger's record
// of the order, if it has one.
func compareOnce(ctx context.Context, stream Stream, db Database, sku string,
	explained func(row, r Record, ok bool) bool) (c Comparison, found sight, err error) {
	before, cursor, has, err := positions(ctx, stream, db, sku)
	switch {
	case err != nil, !has && before.Epoch == 0:
		return c, absent, err
	case !has || before.Position != cursor.Position:
		return c, lagging, nil
	}
	records, err := stream.Records(ctx, sku)
	if err != nil {
		return c, absent, err
	}
	c = Comparison{SKU: sku, At: cursor.Position, Records: len(records), Sold: before.Sold, Deducted: cursor.Deducted,
		ledger: before, born: cursor.Born}
	if err := c.compare(ctx, db, records, explained); err != nil {
		return c, absent, err
	}
	after, again, _, err := positions(ctx, stream, db, sku)
	switch {
	case err != nil:
		return c, absent, err
	case after.Position != before.Position || again.Position != cursor.Position:
		return c, moving, nil
	}
	return c, compared, nil
}

func positions(ctx context.Context, stream Stream, db Database, sku string) (Ledger, Cursor, bool, error) {
	all, err := stream.Ledgers(ctx, []string{sku})
	if err != nil {
		return Ledger{}, Cursor{}, false, err
	}
	cursor, found, err := db.Cursor(ctx, sku)
	return all[0], cursor, found, err
}

// compare fills in what differs. A released or refunded order that Redis has forgotten is no difference.
func (c *Comparison) compare(ctx context.Context, db Database, records map[string]Record,
	explained func(row, r Record, ok bool) bool) error {
	forgotten := time.Now().Add(-ledger.KeepReleased).UnixMilli()
	err := db.Orders(ctx, c.SKU, c.born, func(row Record) {
		c.Booked += row.Counted()
		r, ok := records[row.Serial]
		delete(records, row.Serial)
		text := describe(r, ok)
		switch {
		case text == describe(row, true), !ok && row.Status != ledger.StatusSold && row.Status != ledger.StatusHeld,
			explained != nil && explained(row, r, ok):
			return
		case isLost(row, r, ok, false), row.Status == ledger.StatusHeld && !ok:
			c.lost++
		case row.Status == ledger.StatusReleased && r.Status == ledger.StatusSold && !r.Replaces(row, true, forgotten):
			c.final++
		case row.Status == ledger.StatusSold && r.Status == ledger.StatusSold && row.Deducted > r.Quantity:
			c.unproven++
		}
		c.differ(row.Serial, text, describe(row, true))
	})
	for _, r := range sorted(records) {
		c.differ(r.Serial, describe(r, true), "")
	}
	return err
}

func (c *Comparison) differ(serial, ledger, database string) {
	if len(c.Differences) == maxDifferences {
		c.More++
		return
	}
	c.Differences = append(c.Differences, Difference{serial, ledger, database})
}

func describe(r Record, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s %d of %q", r.Status, r.Quantity, r.User)
}
