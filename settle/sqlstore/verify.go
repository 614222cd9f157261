package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"sluice/settle"
)

// verifiedKinds are the kinds of conflicts that verifying writes.
var verifiedKinds = []string{"difference", "extra", "stock"}

// Explain implements settle.Auditor.
func (s *Store) Explain(ctx context.Context, sku string) (e settle.Explanation, err error) {
	e.Givebacks = make(map[string]bool)
	err = s.each(ctx, s.db, func(rows *sql.Rows) error {
		var serial string
		err := rows.Scan(&serial)
		e.Givebacks[original(serial)] = true
		return err
	}, "SELECT serial FROM sluice_giveback WHERE sku = ? AND done IS NULL", stored(sku))
	if err != nil {
		return e, fmt.Errorf("read what is given back of %q: %w", sku, err)
	}
	err = s.each(ctx, s.db, func(rows *sql.Rows) error {
		var kind string
		var verified bool
		err := rows.Scan(&kind, &verified)
		e.Parked = e.Parked || kind == "entry"
		e.Open = e.Open || verified || kind == "missing" || kind == "lost"
		return err
	}, "SELECT DISTINCT kind, ver = 0 FROM sluice_conflict WHERE target = ? AND sku = ? AND solved IS NULL", s.target,
		stored(sku))
	if err != nil {
		return e, fmt.Errorf("read conflicts of %q: %w", sku, err)
	}
	return e, nil
}

// OwnStock implements settle.Auditor.
func (s *Store) OwnStock(ctx context.Context, sku string) (left, want int64, ok bool, err error) {
	if s.stock.Table != "" {
		return 0, 0, false, nil
	}
	all, err := s.LedgerTotals(ctx, sku)
	if err != nil || len(all) != 1 {
		return 0, 0, false, err
	}
	return all[0].Left, all[0].Expected(), true, nil
}

// Verified implements settle.Auditor. The conflicts have the version 0, so that each ledger has one of a kind.
func (s *Store) Verified(ctx context.Context, sku string, born int64, healed bool, found []settle.Conflict) error {
	err := s.transaction(ctx, func(tx *sql.Tx) error {
		var faults []error
		do := func(query string, args ...any) {
			_, err := tx.ExecContext(ctx, s.sql(query), args...)
			faults = append(faults, err)
		}
		const of = " WHERE target = ? AND sku = ? AND kind = ? AND solved IS NULL"
		for _, kind := range verifiedKinds {
			do("UPDATE sluice_conflict SET solved = "+s.d.now+of+" AND ver = 0", s.target, stored(sku), kind)
		}
		if healed {
			do("UPDATE sluice_conflict SET solved = "+s.d.now+of, s.target, stored(sku), "lost")
		}
		for _, c := range found {
			do("UPDATE sluice_conflict SET detail = ?, solved = NULL WHERE target = ? AND sku = ? AND kind = ? AND epoch = ? "+
				"AND ver = 0", c.Detail, s.target, stored(sku), c.Kind, c.Epoch)
		}
		do("UPDATE sluice_conflict SET solved = "+s.d.now+of+" AND NOT EXISTS (SELECT 1 FROM sluice_order "+
			"WHERE sku = ? AND born = ? AND missing IS NOT NULL)", s.target, stored(sku), "missing", stored(sku), born)
		return errors.Join(append(faults, s.report(ctx, tx, found))...)
	})
	if err != nil {
		return fmt.Errorf("note what verifying %q has found: %w", sku, err)
	}
	return nil
}
