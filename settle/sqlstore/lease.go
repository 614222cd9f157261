package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"sluice/settle"
)

// Lease reserves the cursor of a batch for a time, so that one settler alone sends what follows it. It holds no
// transaction open meanwhile: with SQLite that would hold up every other target. held is the lease that the caller has
// and wants to prolong; 0 = none. Its error wraps settle.ErrElsewhere if another settler has the cursor.
func (s *Store) Lease(ctx context.Context, b settle.Batch, held int64, ttl time.Duration) (lease int64,
	err error) {
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		var from settle.Cursor
		if b.From != nil {
			from = *b.From
		} else if held == 0 {
			if _, err := s.makeCursor(ctx, tx, b.SKU); err != nil {
				return err
			}
		}
		var at settle.Cursor
		var mark []byte
		var now int64
		err := tx.QueryRowContext(ctx, s.sql("SELECT epoch, ver, fingerprint, leased, "+s.d.clock+
			" FROM sluice_cursor WHERE target = ? AND sku = ?"+s.d.skipLocked), s.target, stored(b.SKU)).
			Scan(&at.Epoch, &at.Ver, &mark, &lease, &now)
		copy(at.Fingerprint[:], mark)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return settle.ErrElsewhere
		case err != nil:
			return fmt.Errorf("lock the cursor: %w", err)
		case at.Position != from.Position, at.Fingerprint != from.Fingerprint,
			lease != held && (held != 0 || lease > now):
			return settle.ErrElsewhere
		}
		lease = max(now+ttl.Milliseconds(), lease+1)
		_, err = tx.ExecContext(ctx, s.sql("UPDATE sluice_cursor SET leased = ? WHERE target = ? AND sku = ?"), lease,
			s.target, stored(b.SKU))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("lease the cursor of %q: %w", b.SKU, err)
	}
	return lease, nil
}

// Release ends a lease, so that another settler need not wait for its end.
func (s *Store) Release(ctx context.Context, sku string, lease int64) error {
	_, err := s.db.ExecContext(ctx, s.sql("UPDATE sluice_cursor SET leased = 0 "+
		"WHERE target = ? AND sku = ? AND leased = ?"), s.target, stored(sku), lease)
	if err != nil {
		return fmt.Errorf("release the cursor of %q: %w", sku, err)
	}
	return nil
}

// Advance moves a leased cursor to the end of its batch, and ends the lease. Its error wraps settle.ErrElsewhere if
// another settler has the cursor.
func (s *Store) Advance(ctx context.Context, b settle.Batch, lease int64) error {
	return s.transaction(ctx, func(tx *sql.Tx) error { return s.move(ctx, tx, &b, 0, lease) })
}

// Settled implements settle.Database: the least of the targets' cursors. A target that is not configured any more
// counts as long as its cursor is there.
func (s *Store) Settled(ctx context.Context, sku string) (least settle.Position, err error) {
	cursors := make(map[string]settle.Position)
	err = s.each(ctx, s.db, func(rows *sql.Rows) error {
		var target string
		var at settle.Position
		err := rows.Scan(&target, &at.Epoch, &at.Ver)
		cursors[target] = at
		return err
	}, "SELECT target, epoch, ver FROM sluice_cursor WHERE target IN (?, ?) AND sku = ?",
		settle.OrdersTarget, settle.WebhookTarget, stored(sku))
	if err != nil {
		return least, fmt.Errorf("read the cursors of %q: %w", sku, err)
	}
	least = cursors[settle.OrdersTarget]
	webhook, begun := cursors[settle.WebhookTarget]
	if (begun || s.webhook) && webhook.Before(least) {
		least = webhook
	}
	return least, nil
}

// Cursors returns how far the target is, by SKU.
func (s *Store) Cursors(ctx context.Context) (map[string]settle.Cursor, error) {
	all := make(map[string]settle.Cursor)
	err := s.each(ctx, s.db, func(rows *sql.Rows) error {
		var sku string
		var c settle.Cursor
		err := rows.Scan(&sku, &c.Born, &c.Epoch, &c.Ver, &c.State)
		all[original(sku)] = c
		return err
	}, "SELECT sku, born, epoch, ver, state FROM sluice_cursor WHERE target = ?", s.target)
	if err != nil {
		return nil, fmt.Errorf("read the cursors of the %s: %w", s.target, err)
	}
	return all, nil
}
