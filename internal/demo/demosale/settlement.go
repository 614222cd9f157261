package demosale

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
	"time"

	"sluice/internal/demo"
	"sluice/settle"
	"sluice/settle/sqlstore"
	"sluice/stockgate/ledger/protocol"
)

// settlement is a file of SQLite, into which the orders of a sale are settled when it is over, without the gateway.
type settlement struct {
	path   string
	folder string // that is removed with it; "" = it stays
	store  *sqlstore.Store
}

// openSettlement makes the file. The caller ends it.
func (d *Options) openSettlement(ctx context.Context) (*settlement, error) {
	s := &settlement{path: d.Database}
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
		s.end()
		return nil, fmt.Errorf("--database %s: %w", s.path, err)
	}
	return s, nil
}

// end removes the file unless it was named.
func (s *settlement) end() {
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

// concludeTime bounds the last step of a settlement, also after an interrupt.
const concludeTime = 30 * time.Second

// read settles the ledger, writes down the shop's orders (buyers by serial), and asks SQL how the books stand. It is
// called once, when the sale is over.
func (s *settlement) read(ctx context.Context, ledger protocol.Store, orders map[string]string) (*demo.Settled, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), concludeTime)
	defer cancel()
	if err := s.settle(ctx, ledger); err != nil {
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
	r := &demo.Settled{}
	err = db.QueryRowContext(ctx, "SELECT sold, in_stock, orders, oversold, people_with_two, orders_without_unit, "+
		"units_without_order FROM report WHERE sku = ?", demoSKU).Scan(&r.Sold, &r.Left, &r.Orders, &r.Oversold, &r.Twice,
		&r.NoUnit, &r.NoOrder)
	if err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	if s.folder == "" {
		r.File = s.path
	}
	return r, nil
}

// settle writes the ledger as it stands: a sale that is over changes no more.
func (s *settlement) settle(ctx context.Context, ledger protocol.Store) error {
	stock, _, err := ledger.ReadStock(ctx, demoSKU)
	if err != nil {
		return err
	}
	at := settle.Position{Epoch: stock.Epoch, Ver: stock.Ver}
	records := make(map[string]settle.Record)
	err = ledger.Records(ctx, demoSKU, func(r protocol.Record) bool {
		records[r.Serial] = settle.Record{Position: at, Serial: r.Serial, User: r.User, Quantity: r.Quantity,
			Status: r.Status}
		return true
	})
	if err != nil {
		return err
	}
	_, err = s.store.Settle(ctx, settle.Batch{SKU: demoSKU, Whole: true, Records: slices.Collect(maps.Values(records)),
		To: settle.Cursor{Position: at, Born: stock.Epoch, Numbers: settle.Numbers{Total: stock.Total, Held: stock.Held,
			Sold: stock.Sold, State: string(stock.State)}}})
	return err
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
