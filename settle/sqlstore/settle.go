package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/settle"
	"sluice/stockgate/ledger"
)

const (
	rowsAtOnce = 1000 // of one statement
	orderTable = "sluice_order (sku, born, serial, buyer, quantity, status, epoch, ver, at, taken)"
)

// errShort means that the stock table did not take the change.
var errShort = errors.New("the stock table has too few units, has no row, or rejects the change")

// effort is how a batch is written: first as it is, and then as far as it can be.
type effort struct {
	take bool // orders take and return units
	park bool // records that cannot be stored are parked
}

// Settle implements settle.Database. If the stock table has too few units, the orders are booked in another
// transaction, in which they take none. If a record cannot be stored, it is looked for in another transaction.
func (s *Store) Settle(ctx context.Context, b settle.Batch) (settle.Outcome, error) {
	var wanted int64
	for e := (effort{take: true}); ; {
		o, err := s.settle(ctx, b, e)
		switch {
		case errors.Is(err, settle.ErrData) && !e.park && b.Solved == 0 && len(b.Records) > 0:
			e.park = true
			continue
		case errors.Is(err, errShort):
			e.take, wanted = false, o.Units
			b.Conflicts = append(slices.Clip(b.Conflicts), short(&b, wanted, s.has(ctx, b.SKU), causeOf(&b)))
			continue
		case !e.take:
			o.Units, o.Short = wanted, true
		}
		return o, err
	}
}

// settle is one transaction. The cursor's row is locked first and moved last.
func (s *Store) settle(ctx context.Context, b settle.Batch, e effort) (o settle.Outcome, err error) {
	err = s.transactionOn(ctx, func(tx *sql.Tx, conn *sql.Conn) error {
		o = settle.Outcome{Cursor: b.To}
		if err := s.claim(ctx, tx, &b); err != nil {
			return err
		}
		changes, err := s.changesOf(ctx, tx, &b)
		if err != nil {
			return err
		}
		unowned, err := s.unowned(ctx, tx, &b)
		if err != nil {
			return err
		}
		w, err := s.write(ctx, tx, &b, e)
		if err != nil {
			return err
		}
		o.Units, o.Parked = w.units-min(unowned, max(w.units, 0)), int64(len(w.parked))
		if b.Whole {
			if o.Missing, err = s.markMissing(ctx, tx, &b, w.parked); err != nil {
				return fmt.Errorf("mark missing orders: %w", err)
			}
		}
		if err := s.deduct(ctx, tx, &b, &o); err != nil && (e.take || !errors.Is(err, errShort)) {
			return fmt.Errorf("deduct stock: %w", err)
		}
		o.Cursor.Deducted += w.inherited
		if err := s.move(ctx, tx, &b, o.Cursor.Deducted, 0); err != nil {
			return err
		}
		if err := s.insertJobs(ctx, conn, b.SKU, b.To.Born, changes, w.parked); err != nil {
			return err
		}
		conflicts := slices.Concat(b.Conflicts, b.Park(w.parked, w.cause))
		return errors.Join(s.report(ctx, tx, conflicts), s.solve(ctx, tx, b.Solved), s.solveEntries(ctx, tx, &b, o.Parked))
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

// solveEntries marks the parked entries of a ledger as solved, when all its records were written.
func (s *Store) solveEntries(ctx context.Context, tx *sql.Tx, b *settle.Batch, parked int64) error {
	if !b.Whole || parked > 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, s.sql("UPDATE sluice_conflict SET solved = "+s.d.now+
		" WHERE target = ? AND sku = ? AND kind = 'entry' AND epoch >= ? AND solved IS NULL"), s.target, stored(b.SKU),
		b.To.Born)
	if err != nil {
		return fmt.Errorf("solve parked entries: %w", err)
	}
	return nil
}

// makeCursor makes the cursor of a SKU where there is none.
func (s *Store) makeCursor(ctx context.Context, tx *sql.Tx, sku string) (made int64, err error) {
	made, err = affected(tx.ExecContext(ctx, s.sql(s.d.insertion+" INTO sluice_cursor (target, sku, "+cursorColumns+
		") VALUES (?, ?, 0, 0, 0, ?, 0, 0, 0, '', 0, 0)"+s.d.ignored), s.target, stored(sku), []byte{}))
	if err != nil {
		return 0, fmt.Errorf("make the cursor: %w", err)
	}
	return made, nil
}

// claim locks the cursor's row where it must be, or makes it where there must be none.
func (s *Store) claim(ctx context.Context, tx *sql.Tx, b *settle.Batch) error {
	if b.From == nil {
		n, err := s.makeCursor(ctx, tx, b.SKU)
		if err == nil && n != 1 {
			return settle.ErrElsewhere
		}
		return err
	}
	c, err := s.lock(ctx, tx, b.SKU)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return settle.ErrElsewhere
	case err != nil:
		return fmt.Errorf("lock the cursor: %w", err)
	case !c.SamePosition(*b.From), c.State == settle.Moved && (!b.Whole || b.From.State != settle.Moved):
		return settle.ErrElsewhere // only a rebuild that knows it takes a SKU back
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
		"total = ?, held = ?, sold = ?, state = ?, deducted = ?, moves = ?, leased = 0, changed = "+s.d.now+
		" WHERE target = ? AND sku = ? AND epoch = ? AND ver = ? AND leased = ?"),
		to.Born, to.Epoch, to.Ver, to.Fingerprint[:], to.Total, to.Held, to.Sold,
		to.State, deducted, to.Moves, s.target, stored(b.SKU), from.Epoch, from.Ver, lease)
	if err != nil {
		return fmt.Errorf("move the cursor: %w", err)
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, settle.ErrElsewhere)
	}
	return nil
}

// markMissing marks the orders that should be in the ledger and were not among the records, which are all at one
// position now, but for those that were parked.
func (s *Store) markMissing(ctx context.Context, tx *sql.Tx, b *settle.Batch, parked []settle.Record) (int64, error) {
	n, err := affected(tx.ExecContext(ctx, s.sql("UPDATE sluice_order SET missing = "+s.d.now+
		" WHERE sku = ? AND born = ? AND status IN ('C', 'H') AND missing IS NULL AND NOT (epoch = ? AND ver = ?)"),
		stored(b.SKU), b.To.Born, b.To.Epoch, b.To.Ver))
	for records := range slices.Chunk(parked, rowsAtOnce) {
		if err != nil {
			return 0, err
		}
		args := []any{stored(b.SKU), b.To.Born}
		for _, r := range records {
			args = append(args, stored(r.Serial))
		}
		var known int64
		known, err = affected(tx.ExecContext(ctx, s.sql("UPDATE sluice_order SET missing = NULL WHERE sku = ? AND born = ? "+
			"AND missing IS NOT NULL AND serial IN ("+strings.Repeat(", ?", len(records))[2:]+")"), args...))
		n -= known
	}
	return max(n, 0), err // known counts also what was missing before
}

// deduct lowers the stock by the units of o, and notes in the cursor what it has done. It is errShort if the shop's
// table did not take the change.
func (s *Store) deduct(ctx context.Context, tx *sql.Tx, b *settle.Batch, o *settle.Outcome) error {
	var from settle.Cursor
	if b.From != nil {
		from = *b.From
	}
	o.Cursor.Deducted = from.Deducted
	if s.stock.Table == "" {
		o.Cursor.Deducted += o.Units
		return s.followTotal(ctx, tx, b, from, o)
	}
	changed, err := s.deductShop(ctx, tx, b.SKU, o.Units)
	switch {
	case err != nil:
		return err
	case changed != 1:
		return errShort
	}
	o.Cursor.Deducted += o.Units
	return nil
}

// followTotal sets Sluice's own table to the total without what is booked. More is booked than the total where Redis
// has lost a raise of it: that is a conflict until the total is raised again, or orders are given back.
func (s *Store) followTotal(ctx context.Context, tx *sql.Tx, b *settle.Batch, from settle.Cursor,
	o *settle.Outcome) error {
	left, before := b.To.Total-o.Cursor.Deducted, from.Total-from.Deducted
	another := from.Born != b.To.Born // a ledger that is new here
	if left == before && !another && !b.Whole {
		return nil
	}
	if err := s.setOwn(ctx, tx, b.SKU, max(left, 0)); err != nil {
		return err
	}
	switch {
	case left < 0 && (another || before >= 0):
		o.Short = true
		return s.report(ctx, tx, []settle.Conflict{overbooked(b, -left)})
	case left >= 0 && (another || before < 0):
		_, err := tx.ExecContext(ctx, s.sql("UPDATE sluice_conflict SET solved = "+s.d.now+
			" WHERE target = ? AND sku = ? AND kind = 'stock' AND solved IS NULL"), s.target, stored(b.SKU))
		return err
	}
	return nil
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

// setOwn sets the row of a SKU in Sluice's own table.
func (s *Store) setOwn(ctx context.Context, tx *sql.Tx, sku string, left int64) error {
	changed, err := affected(tx.ExecContext(ctx, s.sql("UPDATE sluice_stock SET num = ? WHERE sku = ?"), left,
		stored(sku)))
	if err != nil || changed == 1 {
		return err
	}
	// Without the row, or with the row as it is, where the database counts what has changed.
	if _, err := tx.ExecContext(ctx, s.sql("DELETE FROM sluice_stock WHERE sku = ?"), stored(sku)); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, s.sql("INSERT INTO sluice_stock (sku, num) VALUES (?, ?)"), stored(sku), left)
	return err
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
func comparing(ctx context.Context, tx *sql.Tx, b *settle.Batch, records []settle.Record, take bool, lock,
	conflict string) (int64, error) {
	before, err := existing(ctx, tx, b, records, lock)
	if err != nil {
		return 0, err
	}
	var units int64
	args := make([]any, 0, 10*len(records))
	for _, r := range records {
		old, ok := before[r.Serial]
		if ok && (!b.Whole && !old.Position.Before(r.Position) || !r.Replaces(old.Record, b.Whole, b.Forgotten)) {
			continue
		}
		taken := old.takes(r, take)
		units += taken - old.taken
		args = append(args, stored(b.SKU), b.To.Born, stored(r.Serial), []byte(r.User), r.Quantity, string(r.Status),
			r.Epoch, r.Ver, r.At, taken)
	}
	if len(args) == 0 {
		return 0, nil
	}
	rows := strings.Repeat(", (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", len(args)/10)[2:]
	_, err = tx.ExecContext(ctx, "INSERT INTO "+orderTable+" VALUES "+rows+" "+conflict, args...)
	return units, err
}

// order is a row.
type order struct {
	settle.Record
	born  int64
	taken int64 // units by which it has lowered the stock
}

// takes is how many units the order has taken when it has become r: as many more as it uses up more, or no more than it
// uses up then.
func (o order) takes(r settle.Record, take bool) int64 {
	before, after := o.Record.Counted(), r.Counted()
	switch {
	case !take:
		return o.taken
	case after < before:
		return min(o.taken, after)
	}
	return min(o.taken+after-before, after) // a row that was edited by hand may have taken units already
}

// existing reads the rows of records, by serial.
func existing(ctx context.Context, tx *sql.Tx, b *settle.Batch, records []settle.Record,
	lock string) (map[string]order, error) {
	args := []any{stored(b.SKU), b.To.Born}
	for _, r := range records {
		args = append(args, stored(r.Serial))
	}
	rows, err := tx.QueryContext(ctx, "SELECT serial, status, quantity, epoch, ver, at, taken FROM sluice_order "+
		"WHERE sku = ? AND born = ? AND serial IN ("+strings.Repeat(", ?", len(records))[2:]+")"+lock, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	before := make(map[string]order, len(records))
	for rows.Next() {
		var r order
		var serial, status string
		if err := rows.Scan(&serial, &status, &r.Quantity, &r.Epoch, &r.Ver, &r.At, &r.taken); err != nil {
			return nil, err
		}
		r.Status = ledger.Status((status + " ")[0])
		before[original(serial)] = r
	}
	return before, rows.Err()
}
