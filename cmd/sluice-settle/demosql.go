package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"sluice/internal/demo"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger"
)

// Settlement is a file of SQLite, into which one sale is settled.
type Settlement struct {
	path   string
	folder string // that is removed with it; "" = it stays
	store  *sqlstore.Store
}

// Open makes the file; path "" is one that Close removes. The caller closes it.
func Open(ctx context.Context, path string) (*Settlement, error) {
	s := &Settlement{path: path}
	if s.path == "" {
		var err error
		if s.folder, err = os.MkdirTemp("", "sluice-demo-"); err != nil {
			return nil, err
		}
		s.path = filepath.Join(s.folder, "demo.db")
	} else if _, err := os.Stat(s.path); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--database %s: it is there, and may have the orders of another sale; remove it, or name "+
			"another one", s.path)
	}
	var err error
	if s.store, err = sqlstore.Open(sqlstore.Options{URL: "sqlite:" + s.path}); err == nil {
		_, err = s.store.Migrate(ctx)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("--database %s: %w", s.path, err)
	}
	return s, nil
}

// Close removes the file unless it was named.
func (s *Settlement) Close() {
	if s.store != nil {
		_ = s.store.Close()
	}
	if s.folder != "" {
		_ = os.RemoveAll(s.folder)
	}
}

// report is a view of the file: what the shop has written down beside what was settled. The shop is the one to believe
// about its own orders; the ledger says how many there could be.
const report = `
CREATE TABLE shop_order (serial text PRIMARY KEY, buyer text NOT NULL);
CREATE VIEW report AS SELECT c.sku, c.total,
  (SELECT COALESCE(SUM(quantity), 0) FROM sluice_order WHERE sku = c.sku AND status = 'C') AS sold,
  (SELECT num FROM sluice_stock WHERE sku = c.sku) AS in_stock,
  (SELECT COUNT(*) FROM shop_order) AS orders,
  MAX(0, (SELECT COUNT(*) FROM shop_order) - c.total) AS oversold,
  (SELECT COUNT(*) FROM (SELECT buyer FROM shop_order GROUP BY buyer HAVING COUNT(*) > 1)) AS people_with_two,
  (SELECT COUNT(*) FROM shop_order s WHERE NOT EXISTS
    (SELECT 1 FROM sluice_order o WHERE o.sku = c.sku AND o.serial = s.serial AND o.status = 'C'))
    AS orders_without_unit,
  (SELECT COUNT(*) FROM sluice_order o WHERE o.sku = c.sku AND o.status = 'C' AND NOT EXISTS
    (SELECT 1 FROM shop_order s WHERE s.serial = o.serial)) AS units_without_order
FROM sluice_cursor c WHERE c.target = 'orders'`

// Audit settles the ledger, writes down the shop's orders (buyers by serial), and asks SQL how the books stand. It is
// called once, when the sale is over.
func (s *Settlement) Audit(ctx context.Context, store *ledger.Store, orders map[string]string) (
	*demo.Audit, error,
) {
	records, err := s.settle(ctx, store)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: s.path}).EscapedPath())
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if err := writeShopOrders(ctx, db, orders); err != nil {
		return nil, fmt.Errorf("write the shop's orders: %w", err)
	}
	var total int64
	a := &demo.Audit{By: "The database agrees, by SQL"}
	err = db.QueryRowContext(ctx, "SELECT total, sold, in_stock, orders, oversold, people_with_two, orders_without_unit, "+
		"units_without_order FROM report WHERE sku = ?", demo.SKU).Scan(&total, &a.Sold, &a.Left, &a.Orders, &a.Oversold,
		&a.Twice, &a.NoUnit, &a.NoOrder)
	if err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	differ, err := s.verify(ctx, records)
	if err != nil {
		return nil, err
	}
	a.Differ = differ
	a.Proof = fmt.Sprintf("verify %s: %d records of the ledger and of the database, %d differ\n"+
		"report %s: total %d, sold %d, in_stock %d, orders %d, oversold %d, people_with_two %d, orders_without_unit %d, "+
		"units_without_order %d\n", demo.SKU, len(records), differ, demo.SKU, total, a.Sold, a.Left, a.Orders, a.Oversold, a.Twice,
		a.NoUnit, a.NoOrder)
	if s.folder == "" {
		a.Proof += fmt.Sprintf("Ask it yourself: sqlite3 %s 'SELECT * FROM report'\n", s.path)
	}
	return a, nil
}

// settle writes the ledger as it stands: a sale that is over changes no more. It returns the records by serial.
func (s *Settlement) settle(ctx context.Context, store *ledger.Store) (map[string]settle.Record, error) {
	stock, _, err := store.ReadStock(ctx, demo.SKU)
	if err != nil {
		return nil, err
	}
	at := settle.Position{Epoch: stock.Epoch, Ver: stock.Ver}
	records := make(map[string]settle.Record)
	err = store.Records(ctx, demo.SKU, func(r ledger.Record) bool {
		records[r.Serial] = settle.Record{Position: at, Serial: r.Serial, User: r.User, Quantity: r.Quantity,
			Status: r.Status}
		return true
	})
	if err != nil {
		return nil, err
	}
	_, err = s.store.Settle(ctx, settle.Batch{SKU: demo.SKU, Whole: true, Records: slices.Collect(maps.Values(records)),
		To: settle.Cursor{Position: at, Born: stock.Epoch, Numbers: settle.Numbers{Total: stock.Total, Held: stock.Held,
			Sold: stock.Sold, State: string(stock.State)}}})
	return records, err
}

// verify counts the records that the ledger and the database do not both have, and have alike.
func (s *Settlement) verify(ctx context.Context, records map[string]settle.Record) (differ int64, err error) {
	cursor, _, err := s.store.Cursor(ctx, demo.SKU)
	if err != nil {
		return 0, err
	}
	equal := 0
	err = s.store.Orders(ctx, demo.SKU, cursor.Born, func(row settle.Record) {
		r := records[row.Serial]
		if r.Status == row.Status && r.Quantity == row.Quantity && r.User == row.User {
			equal++
		} else {
			differ++
		}
	})
	return max(differ, int64(len(records)-equal)), err
}

// writeShopOrders makes the table of the shop, and the view.
func writeShopOrders(ctx context.Context, db *sql.DB, orders map[string]string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // ends nothing after Commit
	if _, err := tx.ExecContext(ctx, report); err != nil {
		return err
	}
	for serial, buyer := range orders {
		if _, err := tx.ExecContext(ctx, "INSERT INTO shop_order VALUES (?, ?)", serial, buyer); err != nil {
			return err
		}
	}
	return tx.Commit()
}
