package settle

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// frozen is the state of a ledger whose history may have been lost.
const frozen = "frozen"

// ErrBehind means that Redis holds an older ledger than the one that was settled: perhaps a wrong server was made
// master.
var ErrBehind = errors.New(
	"redis holds an older ledger than the database; nothing is settled until Redis is the right one")

// ErrGone means that Redis has no ledger for a SKU that has a cursor.
var ErrGone = errors.New("the ledger is gone from Redis; make it anew and adopt the orders of the database")

// recover acts where entries do not follow the cursor. It reports whether it has changed anything.
func (s *Settler) recover(ctx context.Context, p *skuCursor, found finding) (bool, error) {
	all, err := s.stream.Ledgers(ctx, []string{p.sku})
	if err != nil {
		return false, err
	}
	l := all[0]
	switch {
	case l.Epoch == 0 && p.cursor == nil:
		return false, nil // a SKU without a ledger
	case l.Epoch == 0:
		return false, fmt.Errorf("settle %q: %w", p.sku, ErrGone)
	case p.cursor == nil:
		return s.rebuild(ctx, p, l)
	case l.Epoch < p.cursor.Epoch:
		return false, fmt.Errorf("settle %q: %w", p.sku, ErrBehind)
	case l.Born != p.cursor.Born, l.Position == p.cursor.Position && found == gone:
		return s.rebuild(ctx, p, l)
	case l.State == frozen && l.Position == p.compared:
		return false, nil // rebuild when it is open again
	}
	return s.recoverTail(ctx, p, l)
}

// recoverTail acts where entries are missing between the cursor and the ledger, or where Redis has lost entries that
// were settled. If the database alone knows orders that are sold, it freezes the ledger, so that their units are not
// sold again, and adopts them. An operator opens the SKU. Otherwise it rebuilds, unless the ledger is frozen: then the
// instances tell first what they know.
func (s *Settler) recoverTail(ctx context.Context, p *skuCursor, l Ledger) (bool, error) {
	lost, err := s.lost(ctx, p, l)
	if err != nil {
		return false, err
	}
	if len(lost) == 0 {
		if l.State == frozen {
			p.compared = l.Position
			return false, nil
		}
		return s.rebuild(ctx, p, l)
	}
	if s.o.Ledger == nil {
		return false, fmt.Errorf("settle %q: the database alone knows %d orders, and no ledger can be changed", p.sku,
			len(lost))
	}
	serials := make([]string, len(lost))
	var units int64
	for i, r := range lost {
		serials[i] = r.Serial
		units += r.Quantity
	}
	s.log.Error("settle: Redis has lost sold orders; the SKU is frozen and the orders are adopted",
		"sku", p.sku, "orders", len(lost), "units", units, "next", "sluice stock thaw "+p.sku)
	if l.State != frozen {
		if err := s.o.Ledger.Freeze(ctx, p.sku); err != nil {
			return false, fmt.Errorf("freeze %q: %w", p.sku, err)
		}
		s.counts.frozen.Add(1)
	}
	if err := s.o.Ledger.Adopt(ctx, p.sku, lost); err != nil {
		return false, fmt.Errorf("adopt orders of %q: %w", p.sku, err)
	}
	s.counts.lostOrders.Add(int64(len(lost)))
	return true, s.db.Report(ctx, Conflict{
		SKU: p.sku, Position: p.cursor.Position, Kind: "lost",
		Detail: plain(fmt.Sprintf("Redis lost %d sold orders (%d units) that were settled; they were adopted; "+
			"open the SKU with sluice stock thaw: %s", len(lost), units, strings.Join(serials, " "))),
	})
}

// lost returns the sold orders of the database that the ledger does not know at all.
func (s *Settler) lost(ctx context.Context, p *skuCursor, l Ledger) ([]Record, error) {
	known, err := s.stream.Records(ctx, p.sku)
	if err != nil {
		return nil, err
	}
	var lost []Record
	err = s.db.Orders(ctx, p.sku, l.Born, func(r Record) bool {
		if _, ok := known[r.Serial]; !ok && r.Status == 'C' {
			lost = append(lost, r)
		}
		return true
	})
	return lost, err
}

// rebuild makes the database's orders those of the ledger. Sold and held orders that the ledger does not know become
// missing: their units stay deducted until an operator decides.
func (s *Settler) rebuild(ctx context.Context, p *skuCursor, l Ledger) (bool, error) {
	records, err := s.stream.Records(ctx, p.sku)
	if err != nil {
		return false, err
	}
	entries, err := s.stream.Entries(ctx, p.sku, l.Position, 1)
	if err != nil {
		return false, err
	}
	if len(entries) == 0 || entries[0].Position != l.Position {
		return false, fmt.Errorf("rebuild %q: its stream lacks the entry %s", p.sku, l.Position)
	}
	for serial, r := range records {
		r.Position = l.Position
		records[serial] = r
	}
	b := Batch{SKU: p.sku, From: p.cursor, Whole: true, Records: sorted(records)}
	b.To = Cursor{Position: l.Position, Numbers: l.Numbers, Born: l.Born, Fingerprint: entries[0].Fingerprint}
	o, err := s.db.Settle(ctx, b)
	if err != nil {
		return false, fmt.Errorf("rebuild %q at %s: %w", p.sku, l.Position, err)
	}
	p.cursor, p.trimmed = &o.Cursor, Position{} // the pin may be lost too
	s.counts.rebuilds.Add(1)
	s.count(b, o)
	s.log.Warn("settle: the orders of a SKU were read whole", "target", s.o.Target, "sku", p.sku,
		"records", len(b.Records), "units", o.Units, "missing", o.Missing)
	if o.Missing == 0 {
		return true, nil
	}
	return true, s.db.Report(ctx, Conflict{
		SKU: p.sku, Position: l.Position, Kind: "missing",
		Detail: fmt.Sprintf("%d orders are known to the database alone; their units stay deducted; "+
			"see column missing of sluice_order; adopt them, or refund them at the shop", o.Missing),
	})
}
