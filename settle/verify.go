package settle

import (
	"context"
	"errors"
	"fmt"
)

// ErrMoving means that a SKU could not be compared, since its ledger changed all the time.
var ErrMoving = errors.New("it changes all the time, or is not settled yet; try again at a quiet moment")

const compareTries = 20

// Difference is an order that ledger and database know differently at one position.
type Difference struct {
	Serial   string
	Ledger   string // "C 2 of alice"; "" = not known
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
	Booked      int64 // units of the confirmed orders in the database
	Deducted    int64 // units by which the stock table was lowered
}

// Equal reports whether nothing differs.
func (c Comparison) Equal() bool {
	return len(c.Differences) == 0 && c.Sold == c.Booked && c.Deducted == c.Booked
}

// Verify compares the orders of a SKU in Redis and in the database at one position, so that a difference is no lag. It
// writes nothing. ok is false if the SKU has neither a ledger nor a cursor.
func Verify(ctx context.Context, stream Stream, db Database, sku string) (c Comparison, ok bool, err error) {
	for range compareTries {
		before, cursor, found, err := positions(ctx, stream, db, sku)
		switch {
		case err != nil:
			return c, false, err
		case !found && before.Epoch == 0:
			return c, false, nil
		case !found || before.Position != cursor.Position:
			continue
		}
		records, err := stream.Records(ctx, sku)
		if err != nil {
			return c, false, err
		}
		c = Comparison{SKU: sku, At: cursor.Position, Records: len(records), Sold: before.Sold, Deducted: cursor.Deducted}
		if err := c.compare(ctx, db, cursor.Born, records); err != nil {
			return c, false, err
		}
		after, again, _, err := positions(ctx, stream, db, sku)
		if err != nil {
			return c, false, err
		}
		if after.Position == before.Position && again.Position == cursor.Position {
			return c, true, nil
		}
	}
	return c, false, fmt.Errorf("verify %q: %w", sku, ErrMoving)
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
func (c *Comparison) compare(ctx context.Context, db Database, born int64, records map[string]Record) error {
	err := db.Orders(ctx, c.SKU, born, func(row Record) bool {
		c.Booked += row.counted()
		r, ok := records[row.Serial]
		delete(records, row.Serial)
		if text := describe(r, ok); text != describe(row, true) && (ok || row.Status == 'C' || row.Status == 'H') {
			c.differ(row.Serial, text, describe(row, true))
		}
		return true
	})
	for _, r := range sorted(records) {
		c.differ(r.Serial, describe(r, true), "")
	}
	return err
}

func (c *Comparison) differ(serial, ledger, database string) {
	if len(c.Differences) == 100 {
		c.More++
		return
	}
	c.Differences = append(c.Differences, Difference{serial, ledger, database})
}

func describe(r Record, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf("%c %d of %q", r.Status, r.Quantity, r.User)
}
