package sim

// Time in this file is virtual (testing/synctest).

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"sluice/settle"
)

// database is the modelled database of the settlement: what settle/sqlstore writes, without SQL.
type database struct {
	mu        sync.Mutex
	cursor    *settle.Cursor
	rows      map[string]settle.Record // of one SKU
	backs     []*back
	conflicts []settle.Conflict
}

// back is a row of sluice_giveback.
type back struct {
	settle.Giveback
	due  time.Time
	done string
}

// Cursor implements settle.Database.
func (d *database) Cursor(context.Context, string) (settle.Cursor, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cursor == nil {
		return settle.Cursor{}, false, nil
	}
	return *d.cursor, true, nil
}

// Cursors implements settle.Database.
func (d *database) Cursors(ctx context.Context) (map[string]settle.Cursor, error) {
	all := map[string]settle.Cursor{}
	if c, ok, _ := d.Cursor(ctx, sku); ok {
		all[sku] = c
	}
	return all, nil
}

// Settle implements settle.Database.
func (d *database) Settle(_ context.Context, b settle.Batch) (o settle.Outcome, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if (d.cursor == nil) != (b.From == nil) || d.cursor != nil && !d.cursor.SamePosition(*b.From) {
		return o, settle.ErrElsewhere
	}
	var deducted int64
	if b.From != nil && b.From.Born == b.To.Born {
		deducted = d.cursor.Deducted
	}
	for _, r := range b.Records {
		old, ok := d.rows[r.Serial]
		if has("a settler turns a refund back") && old.Status == 'R' && b.Whole {
			r.Status = 'C'
		} else if ok && (has("a settler passes over records") || !b.Whole && !old.Position.Before(r.Position) ||
			!r.Replaces(old, b.Whole, 0)) {
			continue
		}
		r.Missing = false
		o.Units += counted(r) - counted(old)
		d.rows[r.Serial] = r
	}
	if b.Whole {
		for serial, r := range d.rows {
			if r.Position != b.To.Position && (r.Status == 'C' || r.Status == 'H') && !r.Missing {
				r.Missing = true
				d.rows[serial] = r
				o.Missing++
			}
		}
	}
	c := b.To
	c.Deducted = deducted + o.Units
	d.cursor, o.Cursor = &c, c
	d.conflicts = append(d.conflicts, b.Conflicts...)
	return o, nil
}

func counted(r settle.Record) int64 {
	if r.Status == 'C' {
		return r.Quantity
	}
	return 0
}

// Orders implements settle.Database.
func (d *database) Orders(_ context.Context, _ string, _ int64, see func(settle.Record)) error {
	d.mu.Lock()
	var all []settle.Record
	for _, r := range d.rows {
		all = append(all, r)
	}
	d.mu.Unlock()
	slices.SortFunc(all, func(a, b settle.Record) int { return cmp.Compare(a.Serial, b.Serial) })
	for _, r := range all {
		see(r)
	}
	return nil
}

// Settled implements settle.Database.
func (d *database) Settled(context.Context, string) (p settle.Position, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cursor != nil {
		p = d.cursor.Position
	}
	return p, nil
}

// Report implements settle.Database.
func (d *database) Report(_ context.Context, conflicts ...settle.Conflict) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conflicts = append(d.conflicts, conflicts...)
	return nil
}

// giveBack is the shop's row of sluice_giveback.
func (d *database) giveBack(sku, serial string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.backs = append(d.backs, &back{Giveback: settle.Giveback{ID: int64(len(d.backs) + 1), SKU: sku, Serial: serial},
		due: time.Now()})
}

// Due implements settle.Givebacks.
func (d *database) Due(_ context.Context, n int) (due []settle.Giveback, err error) {
	time.Sleep(2 * time.Microsecond) // of the ticks of one instant this is the last
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.backs {
		if b.done == "" && !b.due.After(time.Now()) && len(due) < n {
			due = append(due, b.Giveback)
		}
	}
	return due, nil
}

// GiveBack implements settle.Givebacks. There is one ledger.
func (d *database) GiveBack(_ context.Context, g settle.Giveback, _ settle.Position) (settle.Known, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.rows[g.Serial]
	switch {
	case ok && r.Status == 'X':
		return settle.KnownReleased, 0, nil
	case !ok || r.Status == 'H':
		return settle.KnownNot, 0, nil
	}
	if r.Status == 'C' {
		d.cursor.Deducted -= r.Quantity
		r.Status = 'R'
		d.rows[g.Serial] = r
	}
	return settle.KnownRefunded, d.cursor.Born, nil
}

// Postpone implements settle.Givebacks.
func (d *database) Postpone(_ context.Context, g settle.Giveback, wait time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.backs[g.ID-1]
	b.due, b.Tries = time.Now().Add(min(wait, 8*time.Second)), b.Tries+1 // it would be minutes
	return nil
}

// Done implements settle.Givebacks.
func (d *database) Done(_ context.Context, g settle.Giveback, outcome string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.backs[g.ID-1].done = outcome
	return nil
}

// Explain implements settle.Auditor.
func (d *database) Explain(context.Context, string) (e settle.Explanation, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.Givebacks = make(map[string]bool)
	for _, b := range d.backs {
		e.Givebacks[b.Serial] = b.done == ""
	}
	return e, nil
}

// OwnStock implements settle.Auditor: the shop has a table of its own.
func (d *database) OwnStock(context.Context, string) (left, want int64, ok bool, err error) {
	return 0, 0, false, nil
}

// Verified implements settle.Auditor.
func (d *database) Verified(context.Context, string, int64, bool, []settle.Conflict) error {
	return nil
}
