package settle

import (
	"context"
	"fmt"
	"slices"

	"sluice/stockgate/ledger"
)

// books are a ledger and its orders in the database, compared once.
type books struct {
	records  map[string]Record // of the ledger
	sold     []Record          // of the database: the ledger does not know them, or as held
	refunded []Record          // of the database: the ledger has them as sold or held, or has lost them
	held     []Record          // of the database: the ledger has lost that they are held
	unknown  []Record          // of the database: held, and the ledger, which lost nothing else, does not know them
	intact   bool              // the ledger has lost nothing: it was not told a refund
}

// lost are all orders that the ledger must be told, sold ones first.
func (b books) lost() []Record { return slices.Concat(b.sold, b.held, b.refunded) }

// reconcile makes ledger and database agree where entries do not follow the cursor. What the database knows newer is
// told to the ledger, which is frozen first. It opens by itself when the instances have told too. Else the ledger is
// what the database becomes. While it is frozen, the instances tell first what they know.
// intact says that the stream has the entry of the cursor: Redis has lost nothing that is settled.
func (s *Settler) reconcile(ctx context.Context, p *skuCursor, l Ledger, intact bool) (bool, error) {
	b, err := s.compare(ctx, p, l, intact)
	switch {
	case err != nil:
		return false, err
	case len(b.lost()) > 0:
		return true, s.tell(ctx, p, l, b)
	case len(b.unknown) > 0 && s.o.Ledger != nil && !p.asked:
		return s.ask(ctx, p, b.unknown, intact)
	case l.State == frozen && p.cursor != nil && l.Born == p.cursor.Born:
		p.compared = l.Position
		return false, s.told(ctx, p)
	case p.stays:
		return false, nil
	}
	return s.rebuild(ctx, p, l, b.records)
}

// compare reads all orders on both sides. The database is read first: what another settler books meanwhile is in Redis
// before it is in the database. The stream is read last: it says which change of an order is the newer one.
func (s *Settler) compare(ctx context.Context, p *skuCursor, l Ledger, intact bool) (b books, err error) {
	var rows []Record
	err = s.db.Orders(ctx, p.sku, l.Born, func(r Record) {
		// Rows that were left behind are old.
		if r.Status != ledger.StatusReleased && (p.cursor == nil || p.cursor.State != Moved) {
			rows = append(rows, r)
		}
	})
	if err != nil {
		return b, err
	}
	if b.records, err = s.stream.Records(ctx, p.sku); err != nil || len(rows) == 0 {
		return b, err
	}
	oldest, err := s.stream.Locate(ctx, p.sku, b.records)
	if err != nil {
		return b, err
	}
	// Versions have no holes. If all entries are newer than the cursor's, the others were only trimmed.
	wentBack := !intact && p.cursor != nil && min(oldest, l.Ver) <= p.cursor.Ver
	b.intact = !wentBack && !l.remade
	for _, row := range rows {
		r, ok := b.records[row.Serial]
		lost := isLost(row, r, ok, !b.intact)
		switch {
		case row.Status == ledger.StatusHeld && !ok && b.intact:
			b.unknown = append(b.unknown, row)
		case !lost:
		case row.Status == ledger.StatusSold:
			b.sold = append(b.sold, row)
		case row.Status == ledger.StatusRefunded:
			b.refunded = append(b.refunded, row)
		case !l.remade:
			b.held = append(b.held, row)
		}
	}
	return b, nil
}

// isLost reports whether the ledger, which has r if ok, must be told what the database has of an order: where merging
// both makes another record than the ledger's. incomplete says that the ledger has lost something: then it must be told
// of what it does not know at all, too, so that no instance tells the order as sold after that.
func isLost(row, r Record, ok, incomplete bool) bool {
	switch {
	case row.Status == ledger.StatusReleased:
		return false
	case !ok && row.Status != ledger.StatusSold:
		return incomplete
	case !ok:
		return true
	case row.Status == ledger.StatusRefunded && row.Position.Before(r.Anew):
		return false
	}
	there := r.said()
	return ledger.Merge(there, row.said()).Status != there.Status
}

// said is what a record says when it is merged.
func (r Record) said() ledger.Said {
	s := ledger.Said{Status: r.Status, Epoch: r.Epoch, Ver: r.Ver}
	if r.Status == ledger.StatusSold {
		s.Epoch, s.Ver, s.Adopted = r.Anew.Epoch, r.Anew.Ver, r.Anew != Position{}
	}
	return s
}

// tell tells the ledger what it has lost. It is frozen before, so that no unit is sold again, but where it has lost
// nothing and only sells on what is refunded: the unit is free then. An instance may tell the same orders meanwhile:
// what is final stays so, in whichever order it is told.
func (s *Settler) tell(ctx context.Context, p *skuCursor, l Ledger, b books) error {
	lost, at := b.lost(), l.Position
	if p.cursor != nil {
		at = p.cursor.Position
	}
	if s.o.Ledger == nil {
		return fmt.Errorf("settle %q: the database alone knows %d orders, and no ledger can be changed", p.sku, len(lost))
	}
	if b.intact && len(lost) == len(b.refunded) {
		s.log.Warn("settle: the ledger has orders as sold that the database has as refunded; their units are free now",
			"sku", p.sku, "orders", len(lost), "first", lost[0].Serial)
		if err := s.o.Ledger.PutBack(ctx, p.sku, lost); err != nil {
			return err
		}
		s.counts.lostOrders.Add(int64(len(lost)))
		return nil
	}
	s.log.Error("settle: Redis has lost orders; the SKU is closed until they are put back, and every instance has told "+
		"what it knows", "sku", p.sku, "sold", len(b.sold), "refunded", len(b.refunded), "held", len(b.held),
		"if_it_stays_closed", "sluice stock recover "+p.sku)
	if l.State != frozen {
		s.counts.frozen.Add(1)
	}
	if err := s.o.Ledger.JoinRecovery(ctx, p.sku, l); err != nil {
		return fmt.Errorf("freeze %q: %w", p.sku, err)
	}
	serials := make([]string, len(lost))
	for i, r := range lost {
		serials[i] = r.Serial
	}
	err := s.db.Report(ctx, Conflict{
		SKU: p.sku, Position: at, Kind: "lost",
		Detail: plain(fmt.Sprintf("Redis lost that %d orders were sold, %d refunded and %d held, as was settled; they "+
			"were put back; the SKU opens when every instance has told what it knows, and this ends by itself when it is verified; "+
			"if it stays frozen, sluice stock recover: %s",
			len(b.sold), len(b.refunded), len(b.held), Some(serials))),
	})
	if err != nil {
		return err
	}
	if err := s.o.Ledger.PutBack(ctx, p.sku, lost); err != nil {
		return err
	}
	s.counts.lostOrders.Add(int64(len(lost)))
	return nil
}

// ask has the ledger hold orders again that the database knows as held, and goes on: the resolver asks the shop
// about them. What is held takes units, and frees none, so that the SKU stays open.
func (s *Settler) ask(ctx context.Context, p *skuCursor, held []Record, intact bool) (bool, error) {
	s.log.Warn("settle: the ledger does not know reservations of the database; they are held again, and the shop is "+
		"asked about them at status_url", "sku", p.sku, "held", len(held))
	if err := s.o.Ledger.PutBack(ctx, p.sku, held); err != nil {
		return false, err
	}
	l, err := s.ledgerOf(ctx, p)
	if err != nil {
		return false, err
	}
	p.asked = true // once: what the ledger does not take back becomes missing
	defer func() { p.asked = false }()
	return s.reconcile(ctx, p, l, intact)
}

// told says that a frozen ledger has all orders that are settled: it was compared as it stands.
func (s *Settler) told(ctx context.Context, p *skuCursor) error {
	if s.o.Ledger == nil || s.o.Target != OrdersTarget {
		return nil
	}
	opened, err := s.o.Ledger.Told(ctx, p.sku, p.compared.Epoch)
	if opened {
		s.log.Info("settle: the ledger has its orders again: the SKU goes on", "sku", p.sku)
	}
	return err
}
