package settle

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	batchesATurn     = 20          // then the next SKU has its turn
	acknowledgeEvery = time.Second // of one SKU; trimming is not urgent
	maxDetail        = 64 << 10    // bytes of a conflict
)

// skuCursor is what a settler remembers of one SKU between turns.
type skuCursor struct {
	sku          string
	cursor       *Cursor // nil = none, or not read yet
	loaded       bool
	wait         time.Duration
	due          time.Time
	acknowledged time.Time
	pinned       bool
	trouble      string // what was logged last
	ledger       Ledger // as it was read last
	behind       int64  // changes that wait
	behindSince  time.Time
	compared     Position // of a frozen ledger that lacks no sold order
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
		entries, err := s.stream.Entries(ctx, p.sku, from, s.o.Batch+1)
		if err != nil {
			return worked, err
		}
		batch, found := follow(p.cursor, entries)
		switch found {
		case following:
			if err := s.writeEntries(ctx, p, batch); err != nil {
				return worked, err
			}
			worked = true
			if len(entries) <= s.o.Batch {
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
	return worked, s.acknowledge(ctx, p)
}

// load reads the cursor, and pins the stream before its first entry is read.
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
	entries = entries[:min(len(entries), s.o.Batch)]
	b, used := batchOf(p.sku, p.cursor, entries)
	o, err := s.db.Settle(ctx, b)
	if err != nil {
		return fmt.Errorf("settle %q up to %s: %w", p.sku, b.To.Position, err)
	}
	p.cursor = &o.Cursor
	s.count(b, o)
	s.counts.entries.Add(int64(used))
	if at := entries[0].At; at > 0 {
		s.counts.lag.Observe(max(s.now().Sub(time.UnixMilli(at)).Seconds(), 0))
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
			"at", b.To.Position.String(), "next", "sluice settle status")
	}
	if o.Short {
		s.log.Error("settle: the stock table has too few units; the orders are booked, the stock was not changed",
			"sku", b.SKU, "units", o.Units, "at", b.To.Position.String())
	}
}

// acknowledge lets the stream forget what is settled, at most once a second. The entry at the cursor stays, for its
// fingerprint. A failure is repeated with the next turn.
func (s *Settler) acknowledge(ctx context.Context, p *skuCursor) error {
	if p.cursor == nil || s.now().Sub(p.acknowledged) < acknowledgeEvery && p.pinned {
		return nil
	}
	p.acknowledged = s.now()
	if err := s.stream.Pin(ctx, p.sku, p.cursor.Position); err != nil {
		return err
	}
	p.pinned = true
	if s.o.Ledger == nil || p.cursor.Ver < 2 {
		return nil
	}
	return s.o.Ledger.Acknowledge(ctx, p.sku, p.cursor.Position.before())
}

// plain bounds a text, and makes it one that every database stores.
func plain(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", `\x00`), "?")
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + " …"
	}
	return text
}
