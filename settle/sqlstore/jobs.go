package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"sluice/settle"
	"sluice/stockgate/ledger"
)

var errJobs = errors.New("jobs need PostgreSQL: begin with postgres://, or use a webhook")

// Jobs are what follows the changes of orders, in the same transaction.
type Jobs struct {
	Wants func(status ledger.Status) bool // of an order that has got it

	// Insert inserts a job for each change, on a connection that has begun a transaction.
	Insert func(ctx context.Context, conn *pgx.Conn, sku string, born int64, changes []settle.Record) error
}

// changesOf are the changes of status that a batch will make and that a job follows, in the ledger's order. It must be
// called before the batch is written: the rows tell which changes are new. An order that was refunded by the database
// first has its job already.
func (s *Store) changesOf(ctx context.Context, tx *sql.Tx, b *settle.Batch) (changes []settle.Record, err error) {
	if s.jobs == nil || len(b.Records) == 0 {
		return nil, nil
	}
	rows := make(map[string]order, len(b.Records))
	for records := range slices.Chunk(b.Records, rowsAtOnce) {
		if err := s.statusesOf(ctx, tx, b, records, rows); err != nil {
			return nil, fmt.Errorf("read orders before their jobs: %w", err)
		}
	}
	all := b.Records
	if len(b.Entries) > 0 {
		all = nil // of a batch of entries, Records are only the last ones
		for _, e := range b.Entries {
			all = append(all, e.Records...)
		}
	}
	for _, r := range all {
		old, known := rows[r.Serial]
		if known && (old.Status == r.Status || !b.Whole && !old.Position.Before(r.Position) ||
			!r.Replaces(old.Record, b.Whole, b.Forgotten)) {
			continue
		}
		rows[r.Serial] = order{Record: r}
		if s.jobs.Wants(r.Status) {
			changes = append(changes, r)
		}
	}
	return changes, nil
}

// statusesOf adds the rows of records. Each is looked up by its whole key: while the table has no statistics,
// PostgreSQL would read all orders of the SKU for a list of serials.
func (s *Store) statusesOf(ctx context.Context, tx *sql.Tx, b *settle.Batch, records []settle.Record,
	to map[string]order) error {
	serials := make([]string, len(records))
	for i, r := range records {
		serials[i] = stored(r.Serial)
	}
	return s.each(ctx, tx, func(rows *sql.Rows) error {
		var o order
		var serial, status string
		err := rows.Scan(&serial, &status, &o.Epoch, &o.Ver, &o.At)
		o.Status = ledger.Status((status + " ")[0])
		to[original(serial)] = o
		return err
	}, "SELECT r.serial, o.status, o.epoch, o.ver, o.at FROM unnest($3::text[]) AS r (serial), "+
		"LATERAL (SELECT status, epoch, ver, at FROM sluice_order WHERE sku = $1 AND born = $2 AND serial = r.serial "+
		"OFFSET 0) AS o", stored(b.SKU), b.To.Born, serials)
}

// insertJobs inserts the jobs of changes, but for orders that were parked: these are settled later, by retry.
func (s *Store) insertJobs(ctx context.Context, conn *sql.Conn, sku string, born int64,
	changes, parked []settle.Record) error {
	if len(parked) > 0 {
		changes = slices.DeleteFunc(changes, func(r settle.Record) bool {
			return slices.ContainsFunc(parked, func(p settle.Record) bool { return p.Serial == r.Serial })
		})
	}
	if len(changes) == 0 {
		return nil
	}
	return conn.Raw(func(driver any) error {
		c, ok := driver.(*stdlib.Conn)
		if !ok {
			return errJobs
		}
		return s.jobs.Insert(ctx, c.Conn(), sku, born, changes)
	})
}
