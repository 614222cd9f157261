package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrSchema is the cause when the database has not the tables that this version needs.
var ErrSchema = errors.New("the tables are missing, or those of another version; run: sluice-settle migrate")

// Ping reports an error where the database cannot be reached.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.db.PingContext(ctx); err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	return nil
}

// CheckSchema reports ErrSchema where the tables are not those of this version, and any other error where the database
// cannot be reached or has the orders of another shop.
func (s *Store) CheckSchema(ctx context.Context) error {
	if err := s.Ping(ctx); err != nil {
		return err
	}
	for _, query := range []string{
		"SELECT " + cursorColumns + ", changed, leased FROM sluice_cursor WHERE 1 = 0",
		"SELECT buyer, quantity, status, at, missing, taken FROM sluice_order WHERE 1 = 0",
		"SELECT num FROM sluice_stock WHERE 1 = 0",
		"SELECT id, asked, due, tries, done, outcome FROM sluice_giveback WHERE 1 = 0",
		"SELECT id, kind, detail, entry, found, solved FROM sluice_conflict WHERE 1 = 0",
		"SELECT name FROM sluice_shop WHERE 1 = 0",
	} {
		rows, err := s.db.QueryContext(ctx, query)
		if code := postgresCode(err); code == "42P05" || code == "26000" {
			return fmt.Errorf("a pooler mixes up prepared statements: drop default_query_exec_mode from the URL: %w", err)
		}
		if err != nil {
			return fmt.Errorf("%w (%w)", ErrSchema, err)
		}
		rows.Close()
	}
	return s.CheckShop(ctx)
}

// Claim makes the database that of this shop, if it is no other one's.
func (s *Store) Claim(ctx context.Context) error {
	if s.shop != "" {
		query := s.d.insertion + " INTO sluice_shop (one, name) VALUES (1, ?)" + s.d.ignored
		if _, err := s.db.ExecContext(ctx, s.sql(query), s.shop); err != nil {
			return fmt.Errorf("claim the database: %w", s.broken(err))
		}
	}
	return s.CheckShop(ctx)
}

// CheckShop reports a database that has the orders of another shop: SKUs of one name would be mixed.
func (s *Store) CheckShop(ctx context.Context) error {
	var name string
	err := s.db.QueryRowContext(ctx, "SELECT name FROM sluice_shop").Scan(&name)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && (s.shop == "" || name == s.shop):
		return nil
	case err != nil:
		return fmt.Errorf("read the name of the shop: %w", err)
	}
	return fmt.Errorf("the database has the orders of the shop %q, and name in the file is %q: give each shop a database "+
		"of its own; if the shop has got another name: UPDATE sluice_shop SET name = '%s'", name, s.shop, s.shop)
}

// CheckRights tries every kind of statement on every table, without a row, and returns what the account may not do.
func (s *Store) CheckRights(ctx context.Context) (missing []string) {
	try := func(what, query string) {
		if _, err := s.db.ExecContext(ctx, s.sql(query)); err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", what, s.broken(err)))
		}
	}
	for _, t := range []struct{ table, columns, changed string }{
		{"sluice_cursor", "target, sku, " + cursorColumns, "ver"},
		{"sluice_order", "sku, born, serial, buyer, quantity, status, epoch, ver, at", "ver"},
		{"sluice_stock", "sku, num", "num"},
		{"sluice_conflict", "target, sku, epoch, ver, kind, detail", "solved"},
		{"sluice_shop", "one, name", ""},
	} {
		try(
			"INSERT INTO "+t.table,
			fmt.Sprintf("INSERT INTO %s (%s) SELECT %[2]s FROM %[1]s WHERE 1 = 0", t.table, t.columns),
		)
		if t.changed == "" {
			continue
		}
		try("UPDATE "+t.table, fmt.Sprintf("UPDATE %s SET %s = %[2]s WHERE 1 = 0", t.table, t.changed))
	}
	try("UPDATE sluice_giveback", "UPDATE sluice_giveback SET tries = tries WHERE 1 = 0")
	try("DELETE FROM sluice_stock", "DELETE FROM sluice_stock WHERE 1 = 0")
	if s.stock.Table != "" {
		table, left := s.identifier(s.stock.Table), s.identifier(s.stock.LeftColumn)
		try("UPDATE "+s.stock.Table, fmt.Sprintf("UPDATE %s SET %s = %[2]s WHERE 1 = 0 AND %s IS NULL", table, left,
			s.identifier(s.stock.SKUColumn)))
	}
	return missing
}

// CheckOrdersQuery runs settle.orders_query for a SKU that does not exist.
func (s *Store) CheckOrdersQuery(ctx context.Context, query string) error {
	_, _, err := s.shopOrders(ctx, query, strings.Repeat("0", 19))
	return err
}

// CheckPaidQuery runs settle.paid.query for a SKU that does not exist.
func (s *Store) CheckPaidQuery(ctx context.Context, query string) error {
	_, err := s.CountPaid(ctx, query, strings.Repeat("0", 19))
	return err
}

// Clock is the time of the database.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	var ms int64
	if err := s.db.QueryRowContext(ctx, "SELECT "+s.d.clock).Scan(&ms); err != nil {
		return time.Time{}, fmt.Errorf("read the clock of the database: %w", err)
	}
	return time.UnixMilli(ms), nil
}
