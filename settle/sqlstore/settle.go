package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/settle"
)

const (
	rowsAtOnce = 1000 // of one statement
	orderTable = "sluice_order (sku, born, serial, buyer, quantity, status, epoch, ver, at)"
)

// Settle implements settle.Database. The cursor's row is locked first and moved last.
func (s *Store) Settle(ctx context.Context, b settle.Batch) (o settle.Outcome, err error) {
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		o = settle.Outcome{Cursor: b.To}
		if err := s.claim(ctx, tx, &b); err != nil {
			return err
		}
		for records := range slices.Chunk(b.Records, rowsAtOnce) {
			units, err := s.d.upsert(ctx, tx, &b, records)
			if err != nil {
				return fmt.Errorf("write orders: %w", err)
			}
			o.Units += units
		}
		if b.Whole {
			if o.Missing, err = s.markMissing(ctx, tx, &b); err != nil {
				return fmt.Errorf("mark missing orders: %w", err)
			}
		}
		if err := s.deduct(ctx, tx, &b, &o); err != nil {
			return fmt.Errorf("deduct stock: %w", err)
		}
		if err := s.move(ctx, tx, &b, o.Cursor.Deducted, 0); err != nil {
			return err
		}
		return errors.Join(s.report(ctx, tx, b.Conflicts), s.solve(ctx, tx, b.Solved))
	})
	return o, err
}

// solve marks a conflict as solved; 0 = none.
func (s *Store) solve(ctx context.Context, tx *sql.Tx, id int64) error {
	if id == 0 {
		return nil
	}
	n, err := affected(tx.ExecContext(ctx, s.sql("UPDATE sluice_conflict SET solved = "+s.d.now+
		" WHERE id = ? AND solved IS NULL"), id))
	if err == nil && n != 1 {
		err = fmt.Errorf("conflict %d is solved already", id)
	}
	return err
}

// claim locks the cursor's row where it must be, or makes it where there must be none.
func (s *Store) claim(ctx context.Context, tx *sql.Tx, b *settle.Batch) error {
	if b.From == nil {
		result, err := tx.ExecContext(ctx, s.sql(s.d.insertion+" INTO sluice_cursor (target, sku, "+cursorColumns+
			") VALUES (?, ?, 0, 0, 0, ?, 0, 0, 0, '', 0)"+s.d.ignored), s.target, stored(b.SKU), []byte{})
		if err != nil {
			return fmt.Errorf("make the cursor: %w", err)
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			return errors.Join(err, settle.ErrElsewhere)
		}
		return nil
	}
	c, err := s.lock(ctx, tx, b.SKU)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return settle.ErrElsewhere
	case err != nil:
		return fmt.Errorf("lock the cursor: %w", err)
	case c.Position != b.From.Position || c.Fingerprint != b.From.Fingerprint || c.Born != b.From.Born:
		return settle.ErrElsewhere
	}
	b.From = &c // Deducted is that of the database
	return nil
}

// lock reads and locks the cursor of a SKU. It is sql.ErrNoRows if there is none, or if another settler has locked it.
func (s *Store) lock(ctx context.Context, tx *sql.Tx, sku string) (settle.Cursor, error) {
	return scanCursor(tx.QueryRowContext(ctx, s.sql("SELECT "+cursorColumns+
		" FROM sluice_cursor WHERE target = ? AND sku = ?"+s.d.skipLocked), s.target, stored(sku)))
}

// move compares and sets the cursor, and ends the lease by which it was held; 0 = none.
func (s *Store) move(ctx context.Context, tx *sql.Tx, b *settle.Batch, deducted, lease int64) error {
	var from settle.Position
	if b.From != nil {
		from = b.From.Position
	}
	to := b.To
	result, err := tx.ExecContext(ctx, s.sql("UPDATE sluice_cursor SET born = ?, epoch = ?, ver = ?, fingerprint = ?, "+
		"total = ?, held = ?, sold = ?, state = ?, deducted = ?, leased = 0, changed = "+s.d.now+
		" WHERE target = ? AND sku = ? AND epoch = ? AND ver = ? AND leased = ?"),
		to.Born, to.Epoch, to.Ver, to.Fingerprint[:], to.Total, to.Held, to.Sold,
		to.State, deducted, s.target, stored(b.SKU), from.Epoch, from.Ver, lease)
	if err != nil {
		return fmt.Errorf("move the cursor: %w", err)
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, settle.ErrElsewhere)
	}
	return nil
}

// markMissing marks the orders that should be in the ledger and were not among the records, which are all at one
// position now.
func (s *Store) markMissing(ctx context.Context, tx *sql.Tx, b *settle.Batch) (int64, error) {
	result, err := tx.ExecContext(ctx, s.sql("UPDATE sluice_order SET missing = "+s.d.now+" WHERE sku = ? AND born = ? "+
		"AND status IN ('C', 'H') AND missing IS NULL AND NOT (epoch = ? AND ver = ?)"),
		stored(b.SKU), b.To.Born, b.To.Epoch, b.To.Ver)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// deduct lowers the stock by the units of o, and notes in the cursor what it has done.
func (s *Store) deduct(ctx context.Context, tx *sql.Tx, b *settle.Batch, o *settle.Outcome) error {
	same := b.From != nil && b.From.Born == b.To.Born
	if o.Cursor.Deducted = 0; same {
		o.Cursor.Deducted = b.From.Deducted
	}
	var changed int64
	var err error
	switch {
	case s.stock.Table != "":
		changed, err = s.deductShop(ctx, tx, b.SKU, o.Units)
	case !same:
		changed, err = s.begin(ctx, tx, b.SKU, b.To.Total-o.Units)
	default:
		changed, err = s.deductOwn(ctx, tx, b.SKU, o.Units-(b.To.Total-b.From.Total))
	}
	if err != nil {
		return err
	}
	if changed == 1 {
		o.Cursor.Deducted += o.Units
		return nil
	}
	o.Short = true
	return s.report(ctx, tx, []settle.Conflict{{
		SKU: b.SKU, Position: b.To.Position, Kind: "stock",
		Detail: fmt.Sprintf("%d units were to be deducted, and the stock table has fewer, or no row of this SKU; the "+
			"orders are booked, the stock was not changed; correct the stock by hand", o.Units),
	}})
}

// deductShop changes the shop's table. It returns how many rows had enough. What the shop's table does not take, such
// as a SKU that is no number, or a constraint, is no fault of the orders: they are booked.
func (s *Store) deductShop(ctx context.Context, tx *sql.Tx, sku string, units int64) (int64, error) {
	if units == 0 {
		return 1, nil
	}
	table, left := s.identifier(s.stock.Table), s.identifier(s.stock.LeftColumn)
	query := "UPDATE " + table + " SET " + left + " = " + left + " - ? WHERE " + s.identifier(s.stock.SKUColumn) + " = ?"
	args := []any{units, stored(sku)}
	if s.stock.Check && units > 0 {
		query += " AND " + left + " >= ?"
		args = append(args, units)
	}
	if _, err := tx.ExecContext(ctx, "SAVEPOINT shop_stock"); err != nil {
		return 0, err
	}
	changed, err := affected(tx.ExecContext(ctx, s.sql(query), args...))
	if err != nil && s.d.isData(err) {
		_, err = tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT shop_stock")
		return 0, err
	}
	return changed, err
}

// deductOwn changes Sluice's own table. units may be below 0.
func (s *Store) deductOwn(ctx context.Context, tx *sql.Tx, sku string, units int64) (int64, error) {
	if units == 0 {
		return 1, nil
	}
	return affected(tx.ExecContext(ctx, s.sql("UPDATE sluice_stock SET num = num - ? WHERE sku = ? AND num >= ?"),
		units, stored(sku), units))
}

// begin sets Sluice's own table for a ledger that is new here.
func (s *Store) begin(ctx context.Context, tx *sql.Tx, sku string, left int64) (int64, error) {
	if _, err := tx.ExecContext(ctx, s.sql("DELETE FROM sluice_stock WHERE sku = ?"), stored(sku)); err != nil {
		return 0, err
	}
	_, err := tx.ExecContext(ctx, s.sql("INSERT INTO sluice_stock (sku, num) VALUES (?, ?)"), stored(sku), max(left, 0))
	if left < 0 {
		return 0, err
	}
	return 1, err
}

func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// identifier quotes a name, or a name in a schema.
func (s *Store) identifier(name string) string {
	q := s.d.quote
	return q + strings.ReplaceAll(strings.ReplaceAll(name, q, q+q), ".", q+"."+q) + q
}

// comparing writes orders where the database cannot tell what a row was before: it reads the rows first. The cursor's
// row is locked, so that nothing changes between.
func comparing(ctx context.Context, tx *sql.Tx, b *settle.Batch, records []settle.Record, lock, conflict string) (int64,
	error) {
	before, err := existing(ctx, tx, b, records, lock)
	if err != nil {
		return 0, err
	}
	var units int64
	args := make([]any, 0, 9*len(records))
	for _, r := range records {
		old, ok := before[r.Serial]
		if ok && !b.Whole && !old.Position.Before(r.Position) {
			continue
		}
		units += counted(r) - counted(old)
		args = append(args, stored(b.SKU), b.To.Born, stored(r.Serial), []byte(r.User), r.Quantity, string(r.Status),
			r.Epoch, r.Ver, r.At)
	}
	if len(args) == 0 {
		return 0, nil
	}
	rows := strings.Repeat(", (?, ?, ?, ?, ?, ?, ?, ?, ?)", len(args)/9)[2:]
	_, err = tx.ExecContext(ctx, "INSERT INTO "+orderTable+" VALUES "+rows+" "+conflict, args...)
	return units, err
}

// existing reads the rows of records, by serial.
func existing(ctx context.Context, tx *sql.Tx, b *settle.Batch, records []settle.Record,
	lock string) (map[string]settle.Record, error) {
	args := []any{stored(b.SKU), b.To.Born}
	for _, r := range records {
		args = append(args, stored(r.Serial))
	}
	rows, err := tx.QueryContext(ctx, "SELECT serial, status, quantity, epoch, ver FROM sluice_order "+
		"WHERE sku = ? AND born = ? AND serial IN ("+strings.Repeat(", ?", len(records))[2:]+")"+lock, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	before := make(map[string]settle.Record, len(records))
	for rows.Next() {
		var r settle.Record
		var serial, status string
		if err := rows.Scan(&serial, &status, &r.Quantity, &r.Epoch, &r.Ver); err != nil {
			return nil, err
		}
		r.Status = (status + " ")[0]
		before[original(serial)] = r
	}
	return before, rows.Err()
}

// counted is how many units of the stock a record uses up.
func counted(r settle.Record) int64 {
	if r.Status == 'C' {
		return r.Quantity
	}
	return 0
}
