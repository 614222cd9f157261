package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice/settle"
)

// Due implements settle.Givebacks.
func (s *Store) Due(ctx context.Context, n int) (due []settle.Giveback, err error) {
	err = s.each(ctx, func(rows *sql.Rows) error {
		var g settle.Giveback
		var sku, serial string
		var age int64
		err := rows.Scan(&g.ID, &sku, &serial, &g.Tries, &age)
		g.SKU, g.Serial, g.Age = original(sku), original(serial), time.Duration(age)*time.Millisecond
		due = append(due, g)
		return err
	}, "SELECT id, sku, serial, tries, "+s.d.clock+" - asked FROM sluice_giveback"+
		" WHERE done IS NULL AND due <= "+s.d.clock+" ORDER BY due, id LIMIT ?", n)
	if err != nil {
		return nil, fmt.Errorf("read what is given back: %w", err)
	}
	return due, nil
}

// GiveBack implements settle.Givebacks. The row of the order keeps its version: the ledger's own change, which comes
// later, is newer and changes nothing.
func (s *Store) GiveBack(ctx context.Context, g settle.Giveback) (known settle.Known, err error) {
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		c, err := s.lock(ctx, tx, g.SKU)
		if errors.Is(err, sql.ErrNoRows) {
			_, found, err := s.Cursor(ctx, g.SKU)
			if err == nil && found {
				err = settle.ErrElsewhere // its row is locked
			}
			return err
		}
		if err != nil {
			return err
		}
		b := settle.Batch{SKU: g.SKU, From: &c, To: c}
		r, err := s.order(ctx, tx, &b, g.Serial)
		switch {
		case err != nil:
			return err
		case r.Status == 'X':
			known = settle.KnownReleased
		case r.Status == 'R':
			known = settle.KnownRefunded
		case r.Status == 'C':
			known = settle.KnownRefunded
			return s.refund(ctx, tx, &b, r)
		}
		return nil
	})
	return known, err
}

// order reads one order of a ledger; its status is 0 where there is none.
func (s *Store) order(ctx context.Context, tx *sql.Tx, b *settle.Batch, serial string) (r settle.Record, err error) {
	r.Serial = serial
	var status string
	err = tx.QueryRowContext(ctx,
		s.sql("SELECT status, quantity FROM sluice_order WHERE sku = ? AND born = ? AND serial = ?"),
		stored(b.SKU), b.To.Born, stored(serial)).
		Scan(&status, &r.Quantity)
	if errors.Is(err, sql.ErrNoRows) {
		return r, nil
	}
	r.Status = (status + " ")[0]
	return r, err
}

// refund changes the order, the stock and the cursor's count of what was deducted.
func (s *Store) refund(ctx context.Context, tx *sql.Tx, b *settle.Batch, r settle.Record) error {
	_, err := tx.ExecContext(ctx, s.sql("UPDATE sluice_order SET status = 'R' WHERE sku = ? AND born = ? AND serial = ?"),
		stored(b.SKU), b.To.Born, stored(r.Serial))
	if err != nil {
		return fmt.Errorf("refund the order: %w", err)
	}
	o := settle.Outcome{Cursor: b.To, Units: -r.Quantity}
	if err := s.deduct(ctx, tx, b, &o); err != nil {
		return fmt.Errorf("return stock: %w", err)
	}
	return s.move(ctx, tx, b, o.Cursor.Deducted, 0)
}

// Postpone implements settle.Givebacks.
func (s *Store) Postpone(ctx context.Context, g settle.Giveback, wait time.Duration) error {
	_, err := s.db.ExecContext(ctx, s.sql("UPDATE sluice_giveback SET tries = tries + 1, due = "+s.d.clock+
		" + ? WHERE id = ? AND done IS NULL"), wait.Milliseconds(), g.ID)
	if err != nil {
		return fmt.Errorf("postpone: %w", err)
	}
	return nil
}

// Done implements settle.Givebacks.
func (s *Store) Done(ctx context.Context, g settle.Giveback, outcome string) error {
	_, err := s.db.ExecContext(ctx, s.sql("UPDATE sluice_giveback SET done = "+s.d.clock+", outcome = ? WHERE id = ?"),
		outcome, g.ID)
	if err != nil {
		return fmt.Errorf("end: %w", err)
	}
	return nil
}

// OldestGiveback is the age of the oldest order that the shop gives back and that is not done; 0 = there is none.
func (s *Store) OldestGiveback(ctx context.Context) (time.Duration, error) {
	var age int64
	err := s.db.QueryRowContext(ctx,
		"SELECT COALESCE("+s.d.clock+" - MIN(asked), 0) FROM sluice_giveback WHERE done IS NULL").Scan(&age)
	if err != nil {
		return 0, fmt.Errorf("read what is given back: %w", err)
	}
	return max(time.Duration(age)*time.Millisecond, 0), nil
}

// CountPaid returns the paid units of a SKU, by a query that names it as :sku and returns one number.
func (s *Store) CountPaid(ctx context.Context, query, sku string) (int64, error) {
	args := make([]any, strings.Count(query, ":sku"))
	for i := range args {
		args[i] = stored(sku)
	}
	var units sql.NullInt64
	err := s.db.QueryRowContext(ctx, s.sql(strings.ReplaceAll(query, ":sku", "?")), args...).Scan(&units)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read what is paid of %q by settle.paid.query: %w", sku, err)
	}
	return units.Int64, nil
}
