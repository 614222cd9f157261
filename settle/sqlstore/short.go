package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"sluice/settle"
)

// short is the conflict of units that could not be deducted, or returned. Conflicts at one place differ by their cause.
func short(b *settle.Batch, units int64, has, cause string) settle.Conflict {
	detail := fmt.Sprintf("%s: %d units were to be deducted, and the stock table %s", cause, units, has)
	if units < 0 {
		detail = fmt.Sprintf("%s: %d units were to be returned, and the stock table %s", cause, -units, has)
	}
	return settle.Conflict{SKU: b.SKU, Position: b.To.Position, Kind: "stock",
		Detail: detail + "; the orders are booked, the stock was not changed; correct the stock by hand"}
}

// overbooked is the conflict of a total that is too low for what is booked.
func overbooked(b *settle.Batch, units int64) settle.Conflict {
	return settle.Conflict{SKU: b.SKU, Position: b.To.Position, Kind: "stock", Detail: fmt.Sprintf(
		"%s: %d more units are booked than the total of %d, and sluice_stock says 0; if Redis has lost a raise of the "+
			"total, raise it again; otherwise cancel orders: the conflict ends by itself", causeOf(b), units,
		b.To.Total)}
}

// causeOf names the orders of a batch.
func causeOf(b *settle.Batch) string {
	cause := "a batch"
	if b.Solved != 0 {
		cause = fmt.Sprintf("the entry of conflict %d", b.Solved)
	}
	serials := make([]string, len(b.Records))
	for i, r := range b.Records {
		serials[i] = r.Serial
	}
	return cause + " with the orders " + settle.Some(serials)
}

// has is what the stock table says, as far as it can be read.
func (s *Store) has(ctx context.Context, sku string) string {
	left, err := s.Left(ctx, sku)
	switch {
	case err != nil:
		return "does not take the SKU"
	case left < 0:
		return "has no row of the SKU"
	}
	return fmt.Sprintf("has %d", left)
}

// unowned are units that were deducted for rows that are not there any more, since they were deleted by hand. A ledger
// that is read whole brings the rows back, and the units are not deducted again. Where the ledger is not the cursor's,
// it may be one of before, which Redis has brought back: its rows tell what was deducted.
func (s *Store) unowned(ctx context.Context, tx *sql.Tx, b *settle.Batch) (units int64, err error) {
	if b.From == nil || !b.Whole && b.From.Born == b.To.Born {
		return 0, nil
	}
	err = tx.QueryRowContext(ctx, s.sql("SELECT COALESCE(SUM(taken), 0) FROM sluice_order WHERE sku = ? AND born = ?"),
		stored(b.SKU), b.To.Born).Scan(&units)
	if err != nil {
		return 0, fmt.Errorf("add up what orders have taken: %w", err)
	}
	if b.From.Born != b.To.Born {
		b.From.Deducted = units
	}
	return max(b.From.Deducted-units, 0), nil
}
