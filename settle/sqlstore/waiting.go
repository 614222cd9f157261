package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"sluice/settle"
)

// Waiting is what waits for an operator, by the database alone.
type Waiting struct {
	Conflicts   map[string]int64 // that are not solved, by kind; kinds without any are 0
	Differences []Difference     // by SKU
	Giveback    time.Duration    // age of the oldest order that the shop gives back and that is not done; 0 = none
}

// Difference is a SKU of which other units were deducted than its ledger has sold.
type Difference struct {
	SKU   string
	Units int64 // sold, and not deducted; below 0 = deducted, and not sold
}

// Kinds are the kinds of conflicts.
func Kinds() []string {
	return []string{"difference", "entry", "extra", "giveback", "lost", "missing", "stock"}
}

// Waiting reads what waits. It reads one row for each SKU, and the open conflicts.
func (s *Store) Waiting(ctx context.Context) (w Waiting, err error) {
	w.Conflicts = make(map[string]int64)
	for _, kind := range Kinds() {
		w.Conflicts[kind] = 0
	}
	err = s.each(ctx, s.db, func(rows *sql.Rows) error {
		var kind string
		var n int64
		err := rows.Scan(&kind, &n)
		w.Conflicts[kind] = n
		return err
	}, "SELECT kind, COUNT(*) FROM sluice_conflict WHERE solved IS NULL GROUP BY kind")
	if err != nil {
		return w, fmt.Errorf("count conflicts: %w", err)
	}
	err = s.each(ctx, s.db, func(rows *sql.Rows) error {
		var name string
		var d Difference
		err := rows.Scan(&name, &d.Units)
		d.SKU = original(name)
		w.Differences = append(w.Differences, d)
		return err
	}, "SELECT sku, sold - deducted FROM sluice_cursor WHERE target = ? AND sold <> deducted AND state <> ? ORDER BY sku",
		s.target, settle.Moved)
	if err != nil {
		return w, fmt.Errorf("read differences: %w", err)
	}
	w.Giveback, err = s.OldestGiveback(ctx)
	return w, err
}

// each shows see every row of a query.
func (s *Store) each(ctx context.Context, on queryer, see func(*sql.Rows) error, query string, args ...any) error {
	rows, err := on.QueryContext(ctx, s.sql(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := see(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
