package settle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// frozen is the state of a ledger whose history may have been lost.
const frozen = "frozen"

// ErrBehind means that Redis holds an older ledger than the one that was settled: a server that was behind became
// master, or the ledger was made again by a clock that was behind.
var ErrBehind = errors.New(
	"redis holds an older ledger than the database, and its SKU is closed; if the right server is the master")

// ErrNoLedger means that Redis has no ledger for a SKU that has a cursor.
var ErrNoLedger = errors.New("the ledger is gone from Redis; nothing is settled until it is made again")

// Rebuild reads the orders of a SKU whole, whatever its cursor says, and makes them those of the database. It solves
// entries that were parked. An operator has looked: rows of released orders follow, too. If the database knows newer
// that an order is sold or refunded, the SKU is frozen and the ledger is told instead: told is true then.
func (s *Settler) Rebuild(ctx context.Context, sku string) (told bool, err error) {
	return s.reread(ctx, &skuCursor{sku: sku, overrules: true})
}

// reread is Rebuild of the SKU of as, which says how. Where the database stays as it is, the ledger is told what it has
// lost, and nothing else is done.
func (s *Settler) reread(ctx context.Context, as *skuCursor) (told bool, err error) {
	sku, overwrite := as.sku, !as.stays
	err = again(ctx, func() error {
		p := &skuCursor{sku: sku, stays: as.stays, overrules: as.overrules}
		if err := s.load(ctx, p); err != nil {
			return err
		}
		var from Position
		if p.cursor != nil {
			from = p.cursor.Position
		}
		entries, err := s.stream.Entries(ctx, sku, from, 1)
		if err != nil {
			return err
		}
		_, found := follow(p.cursor, entries)
		frozenBefore := s.counts.frozen.Load() + s.counts.lostOrders.Load()
		l, err := s.ledgerOf(ctx, p)
		if err != nil {
			return err
		}
		if l.Epoch == 0 {
			return fmt.Errorf("rebuild %q: it has no ledger", sku)
		}
		changed, err := s.reconcile(ctx, p, l, found == upToDate || found == following)
		if err == nil && !changed && overwrite {
			err = fmt.Errorf("rebuild %q: it is frozen: open it with sluice stock recover %s, then repeat", sku, sku)
		}
		told = s.counts.frozen.Load()+s.counts.lostOrders.Load() != frozenBefore
		return err
	})
	return told, err
}

// recover acts where entries do not follow the cursor. It reports whether it has changed anything. What looks lost may
// be what another settler has settled and trimmed: the cursor is read again after the ledger, and must not have moved.
func (s *Settler) recover(ctx context.Context, p *skuCursor) (bool, error) {
	l, err := s.ledgerOf(ctx, p)
	switch {
	case err != nil:
		return false, err
	case l.Epoch == 0:
		return false, nil // a SKU without a ledger
	case l.State == frozen && l.Position == p.compared:
		return false, s.told(ctx, p) // rebuild when it is open again
	}
	return s.reconcile(ctx, p, l, false)
}

// ledgerOf reads the ledger that p is the cursor of. It is an error where Redis has not all that is settled.
func (s *Settler) ledgerOf(ctx context.Context, p *skuCursor) (l Ledger, err error) {
	all, err := s.stream.Ledgers(ctx, []string{p.sku})
	if err != nil {
		return l, err
	}
	here, err := s.claim(ctx, p, &all[0])
	if err != nil {
		return l, err
	}
	if err := s.unmoved(ctx, p); err != nil {
		return l, err
	}
	l = all[0].continuing(p.cursor)
	switch {
	case !here:
		return l, ErrElsewhere
	case l.Epoch == 0 && p.cursor != nil:
		return l, fmt.Errorf("settle %q: %w: sluice stock recover %s --total N --from FILE|settle|none --apply",
			p.sku, ErrNoLedger, p.sku)
	case p.cursor != nil && l.Epoch < p.cursor.Epoch:
		// It may have units that are sold. Who opens it does so behind what is settled.
		err := ErrBehind
		if s.o.Ledger != nil {
			err = cmp.Or(s.o.Ledger.Outrun(ctx, p.sku, p.cursor.Position), err)
		}
		return l, fmt.Errorf("settle %q: %w: sluice stock recover %s", p.sku, err, p.sku)
	}
	return l, nil
}

// unmoved is ErrElsewhere if the cursor of the database is not the one that is remembered.
func (s *Settler) unmoved(ctx context.Context, p *skuCursor) error {
	c, ok, err := s.db.Cursor(ctx, p.sku)
	if err != nil {
		return err
	}
	if ok != (p.cursor != nil) || ok && !c.SamePosition(*p.cursor) {
		return ErrElsewhere
	}
	return nil
}

// rebuild makes the database's orders those of the ledger. Sold and held orders that the ledger does not know become
// missing: their units stay deducted until an operator decides.
func (s *Settler) rebuild(ctx context.Context, p *skuCursor, l Ledger, records map[string]Record) (bool, error) {
	entries, err := s.stream.Entries(ctx, p.sku, l.Position, 1)
	if err != nil {
		return false, err
	}
	if len(entries) == 0 || entries[0].Position != l.Position {
		if err := s.unmoved(ctx, p); err != nil {
			return false, err
		}
		return false, fmt.Errorf("rebuild %q: its stream lacks the entry %s", p.sku, l.Position)
	}
	for serial, r := range records {
		r.Position = l.Position
		records[serial] = r
	}
	b := Batch{SKU: p.sku, From: p.cursor, Whole: true, Archived: l.archived, Records: sorted(records),
		Forgotten: s.forgotten()}
	if p.overrules {
		b.Forgotten = math.MaxInt64
	}
	b.To = Cursor{Position: l.Position, Numbers: l.Numbers, Born: l.Born, Fingerprint: entries[0].Fingerprint(),
		Moves: l.moves}
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
	return true, s.reportMissing(ctx, p.sku, l)
}

// reportMissing writes the conflict of orders that the database alone knows.
func (s *Settler) reportMissing(ctx context.Context, sku string, l Ledger) error {
	var serials []string
	var units int64
	err := s.db.Orders(ctx, sku, l.Born, func(r Record) {
		if r.Missing {
			serials, units = append(serials, r.Serial), units+r.Quantity
		}
	})
	if err != nil {
		return err
	}
	return s.db.Report(ctx, Conflict{
		SKU: sku, Position: l.Position, Kind: "missing",
		Detail: plain(fmt.Sprintf("%d units of %d orders are known to the database alone; the ledger has %d units sold and "+
			"%d held; what was deducted stays so; take the orders (sluice stock recover), or have the shop give "+
			"them back by sluice_giveback: %s",
			units, len(serials), l.Sold, l.Held, Some(serials))),
	})
}

// Some quotes the first serials, and tells how many more there are.
func Some(serials []string) string {
	var text strings.Builder
	for i, serial := range serials {
		if i == shownOrders {
			fmt.Fprintf(&text, " and %d more", len(serials)-i)
			break
		}
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(strconv.QuoteToASCII(serial))
	}
	return text.String()
}
