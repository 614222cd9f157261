// Package sqlstore keeps what is settled in PostgreSQL, MySQL, MariaDB or SQLite.
//
// It promises that a batch is one transaction which moves the cursor from where the settler believed it to be, or
// changes nothing; and that stock is lowered by the difference that the order rows have made, never by sums. Only one
// transaction works on a SKU at a time; another one does not wait for it.
//
// It does not read Redis, decide what to settle, or create its tables unless Migrate is called.
package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"sluice/settle"
	"sluice/stockgate/ledger"
)

// Options say which database, and where the shop keeps its stock.
type Options struct {
	// URL is postgres://user@host:port/name, mysql://user@host:port/name, or sqlite:path.
	URL      string
	Password string // "" = that of the URL
	Shop     string // whose orders these are; "" = of any
	Stock    Stock
	Webhook  bool  // there is a webhook: nothing counts as settled before it has a cursor
	Jobs     *Jobs // nil = none; PostgreSQL alone
}

// Stock is the table of the shop that has the units left. The zero value is Sluice's own, sluice_stock.
type Stock struct {
	Table      string // "name" or "schema.name"; "" = sluice_stock, which then begins with the ledger's total
	SKUColumn  string
	LeftColumn string
	// Check deducts a batch only where enough is left for all of it. Else its orders are booked without units, and a
	// conflict is written. Without Check the column may go below 0.
	Check bool
}

// Store is one database. It is safe for concurrent use.
type Store struct {
	db      *sql.DB
	d       dialect
	shop    string
	stock   Stock
	target  string // whose cursors and conflicts these are
	webhook bool
	jobs    *Jobs
}

// dialect is what differs between databases.
type dialect struct {
	name       string // of goose and of the migrations' folder
	numbered   bool   // placeholders are $1, $2, ...
	skipLocked string // after SELECT
	now        string
	clock      string // the time as Unix ms
	quote      string // around identifiers
	insertion  string // INSERT that does nothing where the row is there: its beginning ...
	ignored    string // ... and its end
	immediate  string // has constraints checked by each statement instead of by the commit; "" = they are
	upsert     upserter
	isData     func(error) bool
	options    *sql.TxOptions
	file       *sqliteFile // nil = a server
}

// upserter writes orders, and returns by how many units the stock must be lowered. take false = no row takes or returns
// units.
type upserter func(ctx context.Context, tx *sql.Tx, b *settle.Batch, records []settle.Record, take bool) (int64, error)

// Open connects to a database when it is first used. The caller must Close the Store.
func Open(o Options) (*Store, error) {
	scheme, rest, ok := strings.Cut(o.URL, ":")
	if !ok {
		return nil, fmt.Errorf("database %.40q: it must begin with postgres://, mysql://, or with sqlite: and a path", o.URL)
	}
	s := &Store{shop: o.Shop, stock: o.Stock, target: settle.OrdersTarget, webhook: o.Webhook, jobs: o.Jobs}
	var err error
	switch scheme {
	case "postgres", "postgresql":
		s.db, s.d, err = openPostgres(o.URL, o.Password)
	case "mysql":
		s.db, s.d, err = openMySQL(o.URL, o.Password)
	case "sqlite":
		s.db, s.d, err = openSQLite(rest)
	default:
		err = fmt.Errorf("database %.40q: it must begin with postgres://, mysql://, or with sqlite: and a path", scheme+":")
	}
	if err == nil && s.jobs != nil && s.d.name != "postgres" {
		_ = s.db.Close()
		err = errJobs
	}
	if err != nil {
		return nil, err
	}
	s.db.SetConnMaxIdleTime(time.Minute)
	s.db.SetConnMaxLifetime(5 * time.Minute) // a name may lead to another server by now
	return s, nil
}

// For returns the store of another target's cursors, on the same connections. It is not closed.
func (s *Store) For(target string) *Store {
	other := *s
	other.target = target
	return &other
}

// Close ends all connections.
func (s *Store) Close() error { return s.db.Close() }

// sql writes placeholders as the database wants them.
func (s *Store) sql(query string) string {
	if !s.d.numbered {
		return query
	}
	return numbered(query)
}

// numbered replaces each ? by $1, $2, ...
func numbered(query string) string {
	var out strings.Builder
	n := 0
	for part := range strings.SplitSeq(query, "?") {
		if n > 0 {
			fmt.Fprintf(&out, "$%d", n)
		}
		out.WriteString(part)
		n++
	}
	return out.String()
}

const cursorColumns = "born, epoch, ver, fingerprint, total, held, sold, state, deducted, moves"

// Cursor implements settle.Database.
func (s *Store) Cursor(ctx context.Context, sku string) (settle.Cursor, bool, error) {
	return s.cursor(ctx, s.db, sku)
}

// queryer is a connection of the pool, or a transaction.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (s *Store) cursor(ctx context.Context, from queryer, sku string) (settle.Cursor, bool, error) {
	c, err := scanCursor(from.QueryRowContext(ctx, s.sql("SELECT "+cursorColumns+
		" FROM sluice_cursor WHERE target = ? AND sku = ?"), s.target, stored(sku)))
	if errors.Is(err, sql.ErrNoRows) || err == nil && c.Epoch == 0 { // it was made by Lease alone
		return settle.Cursor{}, false, nil
	}
	if err != nil {
		return c, false, fmt.Errorf("read the cursor of %q: %w", sku, err)
	}
	return c, true, nil
}

func scanCursor(row *sql.Row) (c settle.Cursor, err error) {
	var mark []byte
	err = row.Scan(&c.Born, &c.Epoch, &c.Ver, &mark, &c.Total, &c.Held, &c.Sold, &c.State, &c.Deducted, &c.Moves)
	copy(c.Fingerprint[:], mark)
	return c, err
}

// Orders implements settle.Database.
func (s *Store) Orders(ctx context.Context, sku string, born int64, see func(settle.Record)) error {
	err := s.each(ctx, s.db, func(rows *sql.Rows) error {
		var r settle.Record
		var serial, status string
		var buyer []byte
		err := rows.Scan(&serial, &buyer, &r.Quantity, &status, &r.Epoch, &r.Ver, &r.At, &r.Missing, &r.Deducted)
		if err == nil {
			r.Serial, r.User, r.Status = original(serial), string(buyer), ledger.Status((status + " ")[0])
			see(r)
		}
		return err
	}, "SELECT serial, buyer, quantity, status, epoch, ver, at, missing IS NOT NULL, taken FROM sluice_order "+
		"WHERE sku = ? AND born = ? ORDER BY serial", stored(sku), born)
	if err != nil {
		return fmt.Errorf("read orders of %q: %w", sku, err)
	}
	return nil
}

// Report implements settle.Database.
func (s *Store) Report(ctx context.Context, conflicts ...settle.Conflict) error {
	return s.transaction(ctx, func(tx *sql.Tx) error { return s.report(ctx, tx, conflicts) })
}

func (s *Store) report(ctx context.Context, tx *sql.Tx, conflicts []settle.Conflict) error {
	for _, c := range conflicts {
		n, err := affected(tx.ExecContext(ctx, s.sql(s.d.insertion+" INTO sluice_conflict (target, sku, epoch, ver, kind, "+
			"detail, entry) VALUES (?, ?, ?, ?, ?, ?, ?)"+s.d.ignored), s.target, stored(c.SKU), c.Epoch, c.Ver, c.Kind,
			c.Detail, sql.NullString{String: c.Entry, Valid: c.Entry != ""}))
		if err == nil && n == 0 {
			err = s.repeat(ctx, tx, c)
		}
		if err != nil {
			return fmt.Errorf("write a conflict of %q: %w", c.SKU, err)
		}
	}
	return nil
}

const maxDetail = 64 << 10 // bytes of a conflict to which another one is added

// repeat adds a conflict to the one that is there at its place, which is open again then.
func (s *Store) repeat(ctx context.Context, tx *sql.Tx, c settle.Conflict) error {
	var id int64
	var before string
	var solved bool
	err := tx.QueryRowContext(ctx, s.sql("SELECT id, detail, solved IS NOT NULL FROM sluice_conflict "+
		"WHERE target = ? AND sku = ? AND epoch = ? AND ver = ? AND kind = ?"), s.target, stored(c.SKU), c.Epoch, c.Ver,
		c.Kind).Scan(&id, &before, &solved)
	if err != nil {
		return err
	}
	detail := before
	if !strings.Contains(before, c.Detail) && len(before) < maxDetail {
		detail += "\n" + c.Detail
	}
	if detail == before && !solved {
		return nil
	}
	n, err := affected(tx.ExecContext(ctx, s.sql("UPDATE sluice_conflict SET detail = ?, entry = COALESCE(?, entry), "+
		"solved = NULL WHERE id = ? AND detail = ?"), detail, sql.NullString{String: c.Entry, Valid: c.Entry != ""}, id,
		before))
	if err == nil && n != 1 {
		err = settle.ErrElsewhere // another settler has added one
	}
	return err
}

// transaction commits what f does. f must not use s.db: it would wait for a second connection while it has one. An
// error of the database that the data has caused wraps settle.ErrData.
func (s *Store) transaction(ctx context.Context, f func(*sql.Tx) error) error {
	return s.transactionOn(ctx, func(tx *sql.Tx, _ *sql.Conn) error { return f(tx) })
}

// transactionOn is transaction that shows f the connection too.
func (s *Store) transactionOn(ctx context.Context, f func(*sql.Tx, *sql.Conn) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, s.d.options)
	if err != nil {
		return s.broken(err)
	}
	if err = f(tx, conn); err == nil {
		err = tx.Commit()
	} else {
		_ = tx.Rollback() // the cause is the error that counts
	}
	if err != nil && !errors.Is(err, settle.ErrElsewhere) && s.d.isData(err) {
		return fmt.Errorf("%w: %w", settle.ErrData, err)
	}
	return s.broken(err)
}

// broken says what a broken connection may mean: the driver leaves a server that has become read-only. Of a file it
// says which one it is.
func (s *Store) broken(err error) error {
	if s.d.file != nil {
		return s.d.file.explain(err)
	}
	if errors.Is(err, driver.ErrBadConn) {
		return fmt.Errorf("the connection broke, or the server is read-only: %w", err)
	}
	return err
}

// Embedded reports whether the database is a file of this process, with no operator of its own.
func (s *Store) Embedded() bool { return s.d.file != nil }
