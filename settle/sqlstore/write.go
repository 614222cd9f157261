package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"sluice/settle"
	"sluice/stockgate/ledger"
)

// written is what writing the records of a batch has done.
type written struct {
	units     int64           // by how many the stock must be lowered
	inherited int64           // units that the orders had taken in an earlier ledger
	parked    []settle.Record // that cannot be stored
	cause     error           // of the last one that was parked
}

// writer writes the records of one batch in one transaction.
type writer struct {
	written
	s       *Store
	tx      *sql.Tx
	b       *settle.Batch
	e       effort
	earlier int64                    // the ledger of the SKU before that of the batch
	first   map[string]ledger.Status // the first status of each order, where there is an earlier ledger
}

// write writes the orders. All batches go this way: entries, and ledgers that are read whole.
func (s *Store) write(ctx context.Context, tx *sql.Tx, b *settle.Batch, e effort) (written, error) {
	w := writer{s: s, tx: tx, b: b, e: e}
	var err error
	if w.earlier, err = s.earlier(ctx, tx, b); err != nil {
		return w.written, fmt.Errorf("read the earlier ledger: %w", err)
	}
	if w.earlier != 0 {
		w.first = firstStatuses(b)
	}
	write := w.writeAll
	if e.park {
		write = w.bisect
		if s.d.immediate != "" {
			if _, err := tx.ExecContext(ctx, s.d.immediate); err != nil {
				return w.written, fmt.Errorf("check constraints at once: %w", err)
			}
		}
	}
	for records := range slices.Chunk(b.Records, rowsAtOnce) {
		if err := write(ctx, records); err != nil {
			return w.written, fmt.Errorf("write orders: %w", err)
		}
	}
	return w.written, nil
}

// writeAll writes records, or adds nothing to what was written.
func (w *writer) writeAll(ctx context.Context, records []settle.Record) error {
	inherited, err := w.inherit(ctx, records)
	if err != nil {
		return fmt.Errorf("read orders of the earlier ledger: %w", err)
	}
	units, err := w.s.d.upsert(ctx, w.tx, w.b, records, w.e.take)
	if err != nil {
		return err
	}
	w.inherited += inherited
	w.units += units
	return nil
}

// bisect writes records, and halves them where the database rejects one, until that one is alone and parked.
func (w *writer) bisect(ctx context.Context, records []settle.Record) error {
	if _, err := w.tx.ExecContext(ctx, "SAVEPOINT records"); err != nil {
		return err
	}
	cause := w.writeAll(ctx, records)
	if cause != nil && !w.s.d.isData(cause) {
		return cause
	}
	if cause != nil {
		if _, err := w.tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT records"); err != nil {
			return err
		}
	}
	if _, err := w.tx.ExecContext(ctx, "RELEASE SAVEPOINT records"); err != nil || cause == nil {
		return err
	}
	if len(records) == 1 {
		w.parked, w.cause = append(w.parked, records[0]), cause
		return nil
	}
	half := len(records) / 2
	if err := w.bisect(ctx, records[:half]); err != nil {
		return err
	}
	return w.bisect(ctx, records[half:])
}
