package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"sluice/settle"
)

// Solve implements settle.Solver.
func (s *Store) Solve(ctx context.Context, id int64) (c settle.Conflict, err error) {
	if c, err = s.Conflict(ctx, id); err != nil {
		return c, err
	}
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		if c.Kind == "stock" {
			if err := s.deducted(ctx, tx, c.SKU); err != nil {
				return fmt.Errorf("count the orders of %q as deducted: %w", c.SKU, err)
			}
		}
		return s.solve(ctx, tx, id)
	})
	return c, err
}

// deducted notes that the stock table was corrected: it is lowered by what is booked of the present ledger, so that a
// refund returns the units of the order.
func (s *Store) deducted(ctx context.Context, tx *sql.Tx, sku string) error {
	at, err := s.lock(ctx, tx, sku)
	if errors.Is(err, sql.ErrNoRows) {
		return settle.ErrElsewhere
	}
	if err != nil {
		return err
	}
	const counted = "CASE WHEN status = 'C' THEN quantity ELSE 0 END"
	_, err = tx.ExecContext(ctx, s.sql("UPDATE sluice_order SET taken = "+counted+
		" WHERE sku = ? AND born = ? AND taken <> "+counted), stored(sku), at.Born)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, s.sql("UPDATE sluice_cursor SET deducted = (SELECT COALESCE(SUM(taken), 0) FROM "+
		"sluice_order WHERE sku = ? AND born = ?) WHERE target = ? AND sku = ?"), stored(sku), at.Born, s.target,
		stored(sku))
	return err
}
