package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"sluice/settle"
)

// Conflict is a conflict that no operator has solved.
type Conflict struct {
	settle.Conflict
	Found string // when, as the database writes it
}

// Conflicts returns the oldest unsolved conflicts.
func (s *Store) Conflicts(ctx context.Context, limit int) (all []Conflict, err error) {
	err = s.each(ctx, s.db, func(rows *sql.Rows) error {
		var c Conflict
		var sku string
		err := rows.Scan(&c.ID, &sku, &c.Epoch, &c.Ver, &c.Kind, &c.Detail, &c.Found)
		c.SKU = original(sku)
		all = append(all, c)
		return err
	}, "SELECT id, sku, epoch, ver, kind, detail, CAST(found AS char(26)) FROM sluice_conflict "+
		"WHERE target = ? AND solved IS NULL ORDER BY id LIMIT ?", s.target, limit)
	if err != nil {
		return nil, fmt.Errorf("read conflicts: %w", err)
	}
	return all, nil
}

// Conflict returns one conflict that is not solved, with the entry that was parked.
func (s *Store) Conflict(ctx context.Context, id int64) (c settle.Conflict, err error) {
	var sku string
	var entry sql.NullString
	err = s.db.QueryRowContext(ctx, s.sql("SELECT id, sku, epoch, ver, kind, detail, entry FROM sluice_conflict "+
		"WHERE id = ? AND solved IS NULL"), id).Scan(&c.ID, &sku, &c.Epoch, &c.Ver, &c.Kind, &c.Detail, &entry)
	if errors.Is(err, sql.ErrNoRows) {
		return c, fmt.Errorf("there is no conflict %d that is not solved; see: sluice-settle status", id)
	}
	if err != nil {
		return c, fmt.Errorf("read conflict %d: %w", id, err)
	}
	c.SKU, c.Entry = original(sku), entry.String
	return c, nil
}

// Totals is one ledger as the database has it.
type Totals struct {
	SKU string
	settle.Cursor
	Booked    int64 // units of the sold orders
	Undecided int64 // units of the held orders
	Orders    int64 // sold
	Missing   int64 // orders that only the database knows
	Left      int64 // in the stock table; -1 = it has no row of the SKU
	Changed   string
}

// Expected is how many units Sluice's own stock table should have.
func (b Totals) Expected() int64 { return max(b.Total-b.Booked, 0) }

// LedgerTotals returns the books of the current ledger of each SKU, sorted by SKU. sku "" = all. What is left in
// Sluice's own stock table is of the same instant; a table of the shop is read afterwards.
func (s *Store) LedgerTotals(ctx context.Context, sku string) (all []Totals, err error) {
	query := "SELECT c.sku, c.born, c.epoch, c.ver, c.total, c.held, c.sold, c.state, c.deducted, CAST(c.changed AS " +
		"char(26)), " +
		"COALESCE(SUM(CASE WHEN o.status = 'C' THEN o.quantity END), 0), " +
		"COALESCE(SUM(CASE WHEN o.status = 'H' THEN o.quantity END), 0), " +
		"COUNT(CASE WHEN o.status = 'C' THEN 1 END), COUNT(o.missing), " +
		"COALESCE((SELECT s.num FROM sluice_stock s WHERE s.sku = c.sku), -1) " +
		"FROM sluice_cursor c LEFT JOIN sluice_order o ON o.sku = c.sku AND o.born = c.born WHERE c.target = ?"
	args := []any{s.target}
	if sku != "" {
		query += " AND c.sku = ?"
		args = append(args, stored(sku))
	}
	err = s.each(ctx, s.db, func(rows *sql.Rows) error {
		var b Totals
		var name string
		err := rows.Scan(&name, &b.Born, &b.Epoch, &b.Ver, &b.Total, &b.Held, &b.Sold, &b.State, &b.Deducted, &b.Changed,
			&b.Booked, &b.Undecided, &b.Orders, &b.Missing, &b.Left)
		b.SKU = original(name)
		all = append(all, b)
		return err
	}, query+" GROUP BY c.target, c.sku, c.born, c.epoch, c.ver, c.total, c.held, c.sold, c.state, c.deducted, c.changed "+
		"ORDER BY c.sku", args...)
	if err != nil {
		return nil, fmt.Errorf("read the books: %w", err)
	}
	for i := range all {
		if s.stock.Table == "" {
			break
		}
		if all[i].Left, err = s.Left(ctx, all[i].SKU); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Left is what the stock table says; -1 = it has no row of the SKU, or NULL.
func (s *Store) Left(ctx context.Context, sku string) (int64, error) {
	table, name, column := "sluice_stock", "sku", "num"
	if s.stock.Table != "" {
		table, name, column = s.identifier(s.stock.Table), s.identifier(s.stock.SKUColumn), s.identifier(s.stock.LeftColumn)
	}
	var left sql.NullInt64
	query := s.sql("SELECT " + column + " FROM " + table + " WHERE " + name + " = ?")
	err := s.db.QueryRowContext(ctx, query, stored(sku)).Scan(&left)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return -1, fmt.Errorf("read the stock of %q: %w", sku, err)
	case !left.Valid:
		return -1, nil
	}
	return left.Int64, nil
}
