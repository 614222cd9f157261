package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"sluice/settle"
	"sluice/stockgate/ledger"
)

// Due implements settle.Givebacks.
func (s *Store) Due(ctx context.Context, n int) (due []settle.Giveback, err error) {
	err = s.each(ctx, s.db, func(rows *sql.Rows) error {
		var g settle.Giveback
		var sku, serial string
		var age int64
		err := rows.Scan(&g.ID, &sku, &serial, &g.Tries, &age)
		g.SKU, g.Serial, g.Age = original(sku), original(serial), time.Duration(age)*time.Millisecond
		due = append(due, g)
		return err
	}, "SELECT id, sku, serial, tries, "+s.d.clock+" - asked FROM sluice_giveback"+
		" WHERE done IS NULL AND due <= "+s.d.clock+" ORDER BY due, id LIMIT ?", n)
	if err != nil {
		return nil, fmt.Errorf("read what is given back: %w", err)
	}
	return due, nil
}

// GiveBack implements settle.Givebacks. The row of the order keeps its version: the ledger's own change, which comes
// later, is newer and changes nothing.
func (s *Store) GiveBack(ctx context.Context, g settle.Giveback, upTo settle.Position) (known settle.Known, born int64,
	err error) {
	err = s.transactionOn(ctx, func(tx *sql.Tx, conn *sql.Conn) error {
		c, err := s.lock(ctx, tx, g.SKU)
		if errors.Is(err, sql.ErrNoRows) {
			_, found, err := s.cursor(ctx, tx, g.SKU)
			if err == nil && found {
				err = settle.ErrElsewhere // its row is locked
			}
			return err
		}
		if err != nil {
			return err
		}
		b := settle.Batch{SKU: g.SKU, From: &c, To: c}
		r, err := s.order(ctx, tx, &b, g.Serial)
		born = r.born
		switch {
		case err != nil || r.born != c.Born && c.Position.Before(upTo) || r.born == c.Born && g.Earlier:
			return err
		case r.Status == ledger.StatusReleased:
			known = settle.KnownReleased
			return nil
		case r.Status != ledger.StatusRefunded && r.Status != ledger.StatusSold && !r.Missing:
			return nil
		}
		if known = settle.KnownRefunded; r.Missing {
			known = settle.KnownMissing
			if err := s.done(ctx, tx, g, "refunded"); err != nil {
				return err
			}
		} else if r.born != c.Born {
			known = settle.KnownEarlier
		}
		if r.Status == ledger.StatusRefunded {
			return nil
		}
		if err := s.refund(ctx, tx, &b, r); err != nil {
			return err
		}
		return s.insertRefund(ctx, conn, g.SKU, r.born, r.Record)
	})
	return known, born, err
}

// order reads one order in the newest ledger that has it; its status is 0 where there is none. The cursor's ledger is
// the newest one: the others are searched only if it lacks the order, since no index begins with the serial.
func (s *Store) order(ctx context.Context, tx *sql.Tx, b *settle.Batch, serial string) (r order, err error) {
	r.Serial = serial
	var status string
	for _, of := range []string{"born = ?", "born < ? ORDER BY born DESC LIMIT 1"} {
		var buyer []byte
		err = tx.QueryRowContext(ctx, s.sql("SELECT status, quantity, taken, born, buyer, epoch, ver, at, "+
			"missing IS NOT NULL FROM sluice_order WHERE sku = ? AND serial = ? AND "+of), stored(b.SKU), stored(serial),
			b.To.Born).
			Scan(&status, &r.Quantity, &r.taken, &r.born, &buyer, &r.Epoch, &r.Ver, &r.At, &r.Missing)
		r.User = string(buyer)
		if !errors.Is(err, sql.ErrNoRows) {
			break
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return r, nil
	}
	r.Status = ledger.Status((status + " ")[0])
	return r, err
}

// refund changes the order, the stock and the cursor's count of what was deducted. The stock gets what the order has
// taken; if the table does not take it back, that is a conflict.
func (s *Store) refund(ctx context.Context, tx *sql.Tx, b *settle.Batch, r order) error {
	o := settle.Outcome{Cursor: b.To, Units: -r.taken}
	var err error
	if r.born == b.To.Born {
		err = s.deduct(ctx, tx, b, &o)
	} else {
		err = s.returnEarlier(ctx, tx, b.SKU, r)
	}
	switch {
	case err == nil:
		r.taken = 0
	case errors.Is(err, errShort):
		err = s.report(ctx, tx, []settle.Conflict{short(b, o.Units, "does not take them",
			"the refund of "+strconv.QuoteToASCII(r.Serial))})
	}
	if err != nil {
		return fmt.Errorf("return stock: %w", err)
	}
	_, err = tx.ExecContext(ctx, s.sql("UPDATE sluice_order SET status = 'R', at = "+s.d.clock+", taken = ?, "+
		"missing = NULL WHERE sku = ? AND born = ? AND serial = ?"), r.taken, stored(b.SKU), r.born, stored(r.Serial))
	if err != nil {
		return fmt.Errorf("refund the order: %w", err)
	}
	return s.move(ctx, tx, b, o.Cursor.Deducted, 0)
}

// insertRefund inserts the job of an order that is refunded by the database first. It has the version of the change
// before: the ledger's own one comes later.
func (s *Store) insertRefund(ctx context.Context, conn *sql.Conn, sku string, born int64, r settle.Record) error {
	if r.Status = ledger.StatusRefunded; s.jobs == nil || !s.jobs.Wants(r.Status) {
		return nil
	}
	return s.insertJobs(ctx, conn, sku, born, []settle.Record{r}, nil)
}

// returnEarlier returns what an order of an earlier ledger has taken. Sluice's own table and the cursor count the units
// of the present ledger alone.
func (s *Store) returnEarlier(ctx context.Context, tx *sql.Tx, sku string, r order) error {
	if s.stock.Table == "" {
		return nil
	}
	changed, err := s.deductShop(ctx, tx, sku, -r.taken)
	if err == nil && changed != 1 {
		err = errShort
	}
	return err
}

// Postpone implements settle.Givebacks.
func (s *Store) Postpone(ctx context.Context, g settle.Giveback, wait time.Duration) error {
	_, err := s.db.ExecContext(ctx, s.sql("UPDATE sluice_giveback SET tries = tries + 1, due = "+s.d.clock+
		" + ? WHERE id = ? AND done IS NULL"), wait.Milliseconds(), g.ID)
	if err != nil {
		return fmt.Errorf("postpone: %w", err)
	}
	return nil
}

// Done implements settle.Givebacks.
func (s *Store) Done(ctx context.Context, g settle.Giveback, outcome string) error {
	return s.done(ctx, s.db, g, outcome)
}

// execer is a connection of the pool, or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (s *Store) done(ctx context.Context, on execer, g settle.Giveback, outcome string) error {
	_, err := on.ExecContext(ctx, s.sql("UPDATE sluice_giveback SET done = "+s.d.clock+", outcome = ? WHERE id = ?"),
		outcome, g.ID)
	if err != nil {
		return fmt.Errorf("end: %w", err)
	}
	return nil
}

// OldestGiveback is the age of the oldest order that the shop gives back and that is not done; 0 = there is none.
func (s *Store) OldestGiveback(ctx context.Context) (time.Duration, error) {
	var open, age int64
	err := s.db.QueryRowContext(ctx, "SELECT COUNT(*), COALESCE("+s.d.clock+
		" - MIN(asked), 0) FROM sluice_giveback WHERE done IS NULL").Scan(&open, &age)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read what is given back: %w", err)
	case open == 0:
		return 0, nil
	}
	return time.Duration(max(age, 1)) * time.Millisecond, nil // one of this millisecond has an age, too
}

// CountPaid returns the paid units of a SKU, by a query that names it as :sku and returns one number.
func (s *Store) CountPaid(ctx context.Context, query, sku string) (int64, error) {
	query, args := ofSKU(query, sku)
	var units sql.NullInt64
	err := s.db.QueryRowContext(ctx, s.sql(query), args...).Scan(&units)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("read what is paid of %q by settle.paid.query: %w", sku, err)
	}
	return units.Int64, nil
}
