package settle

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sluice/stockgate/ledger"
)

const (
	batchesATurn     = 20          // then the next SKU has its turn
	firstEntries     = 16          // that are read for the first transaction of a SKU, and at least for each
	batchRecords     = 2000        // of a transaction, unless one entry has more: 500 entries of 64 would have 32,000
	acknowledgeEvery = time.Second // of one SKU; trimming is not urgent
	maxDetail        = 64 << 10    // bytes of a conflict
)

// skuCursor is what a settler remembers of one SKU between turns.
type skuCursor struct {
	sku          string
	cursor       *Cursor // nil = none, or not read yet
	loaded       bool
	entries      int // to be read for a transaction, by how many records those of the last one had
	wait         time.Duration
	due          time.Time
	rests        time.Time // no turn before, whatever has changed
	more         bool      // the last turn has left entries that it has seen
	postponed    time.Time // until when the target wants no further try
	acknowledged time.Time
	trimmed      Position // of the cursor when the stream was trimmed last
	trouble      string   // what was logged last
	ledger       Ledger   // as it was read last
	behind       int64    // changes that wait
	behindSince  time.Time
	compared     Position // of a frozen ledger that lacks no sold order
	stays        bool     // the database does not follow a ledger that is read whole
	overrules    bool     // an operator has looked at what the database has as released: it follows the ledger in all
	asked        bool     // reservations were put back in this turn
	disputed     string   // what was logged last of a file and a mark that differ
	left         string   // the move, and the server of the ledger, when the database was told that it is elsewhere
}

// settleSKU settles what there is of one SKU, at most some batches. It reports whether anything was settled.
func (s *Settler) settleSKU(ctx context.Context, p *skuCursor) (worked bool, err error) {
	defer func() {
		if err != nil { // the cursor may have moved or not: the database tells
			p.loaded = false
		}
	}()
	if err := s.load(ctx, p); err != nil {
		return false, err
	}
	for range batchesATurn {
		var from Position
		if p.cursor != nil {
			from = p.cursor.Position
		}
		n := min(max(p.entries, firstEntries), s.o.Batch)
		entries, err := s.stream.Entries(ctx, p.sku, from, n+1)
		if err != nil {
			return worked, err
		}
		batch, found := follow(p.cursor, entries)
		if found == unread && p.cursor == nil && s.o.Target == WebhookTarget {
			batch, found = consecutive(entries), following
			s.log.Warn("settle: the webhook begins at the oldest change that Redis has; earlier ones are not sent",
				"sku", p.sku, "from", batch[0].Position.String())
		}
		if p.cursor != nil && p.cursor.State == Moved && s.o.Target == OrdersTarget {
			found = unread // it came back, and its rows are old
		}
		switch found {
		case following:
			part := ofOneTransaction(batch, n)
			if err := s.writeEntries(ctx, p, part); err != nil {
				return worked, err
			}
			worked = true
			if len(entries) <= n && len(part) == len(batch) {
				return worked, s.acknowledge(ctx, p)
			}
			continue
		case upToDate:
			if p.cursor != nil {
				return worked, s.acknowledge(ctx, p)
			}
		}
		changed, err := s.recover(ctx, p)
		return worked || changed, err
	}
	p.more = true
	return worked, s.acknowledge(ctx, p)
}

// ofOneTransaction returns the first n entries, or fewer that have batchRecords records, but at least one.
func ofOneTransaction(entries []Entry, n int) []Entry {
	records := 0
	for i, e := range entries {
		if records += len(e.Records); i == n || i > 0 && records > batchRecords {
			return entries[:i]
		}
	}
	return entries
}

// load reads the cursor.
func (s *Settler) load(ctx context.Context, p *skuCursor) error {
	if p.loaded {
		return nil
	}
	c, ok, err := s.db.Cursor(ctx, p.sku)
	if err != nil {
		return err
	}
	if p.cursor, p.loaded = nil, true; ok {
		p.cursor = &c
	}
	return nil
}

// writeEntries writes entries in one transaction.
func (s *Settler) writeEntries(ctx context.Context, p *skuCursor, entries []Entry) error {
	b, used := batchOf(p.sku, p.cursor, entries)
	b.To.Moves, b.Forgotten = max(b.To.Moves, p.ledger.moves), s.forgotten()
	if err := s.findBorn(ctx, &b); err != nil {
		return err
	}
	o, err := s.db.Settle(ctx, b)
	if err != nil {
		return fmt.Errorf("settle %q up to %s: %w", p.sku, b.To.Position, err)
	}
	p.cursor = &o.Cursor
	s.count(b, o)
	s.counts.entries.Add(int64(used))
	records := 0
	for _, e := range b.Entries {
		records += len(e.Records)
	}
	p.entries = batchRecords * used / max(records, 1)
	if at := entries[0].At; at > 0 {
		lag := max(s.now().Sub(time.UnixMilli(at)), 0)
		s.counts.lag.Observe(lag.Seconds())
		s.counts.lastLag.Store(int64(lag))
	}
	return nil
}

// forgotten is when an order must have been given back at the latest, Unix ms, for a ledger to have forgotten it by
// now.
func (s *Settler) forgotten() int64 { return s.now().Add(-ledger.KeepReleased).UnixMilli() }

// findBorn corrects the first epoch of a ledger whose beginning was not read.
func (s *Settler) findBorn(ctx context.Context, b *Batch) error {
	if b.From != nil || b.Entries[0].Ver == 1 {
		return nil
	}
	all, err := s.stream.Ledgers(ctx, []string{b.SKU})
	if err != nil {
		return err
	}
	if born := all[0].continuing(nil).Born; b.Entries[0].Epoch >= born {
		b.To.Born = born
	}
	return nil
}

// count logs and counts what a transaction has done.
func (s *Settler) count(b Batch, o Outcome) {
	s.counts.orders.Add(int64(len(b.Records)))
	s.counts.batches.Add(1)
	for _, c := range b.Conflicts {
		s.log.Error("settle: conflict", "sku", c.SKU, "kind", c.Kind, "at", c.Position.String())
	}
	if o.Parked > 0 {
		s.log.Error("settle: the database rejects orders; they are parked", "sku", b.SKU, "orders", o.Parked,
			"at", b.To.Position.String(), "fix", "sluice-settle status")
	}
	if o.Short {
		s.log.Error("settle: the stock table has too few units, or does not take the change; the orders are booked",
			"sku", b.SKU, "units", o.Units, "at", b.To.Position.String(), "fix", "sluice-settle status")
	}
}

// acknowledge lets the stream forget what every target has settled, at most once a second. The entry at the last
// cursor stays, for its fingerprint. The pin keeps it and all after it from the acknowledgements of other consumers. A
// failure is repeated with the next turn.
func (s *Settler) acknowledge(ctx context.Context, p *skuCursor) error {
	if p.cursor == nil || p.trimmed == p.cursor.Position || s.now().Sub(p.acknowledged) < acknowledgeEvery {
		return nil
	}
	p.acknowledged = s.now()
	at, err := s.db.Settled(ctx, p.sku)
	if err != nil {
		return err
	}
	if err := s.stream.Pin(ctx, p.sku, at); err != nil {
		return err
	}
	if s.o.Ledger != nil && at.Ver > 1 {
		if err := s.o.Ledger.Acknowledge(ctx, p.sku, at.before()); err != nil {
			return err
		}
	}
	p.trimmed = p.cursor.Position
	return nil
}

// plain bounds a text, and makes it one that every database stores.
func plain(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", `\x00`), "?")
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + " …"
	}
	return text
}
