package ledger

import (
	"context"
	"fmt"
	"time"
)

// A Store tells ledgers that may have lost their last changes what this instance knows of them.

// defaultSettle is how long a frozen ledger stays so at least: an instance whose every mark was lost calls meanwhile.
const defaultSettle = 3 * time.Second

// progress is how far this instance has told a ledger what it knows, since its epoch rose.
type progress struct {
	epoch    int64 // the one that it rose to
	due      bool  // it has not told all
	phase    int   // 0 nothing, 1 of the orders that it took itself, 2 what it has done to those of others too
	told     int64 // the changes of the journal that were told
	restored int   // records that were put back
	partial  bool  // the journal does not reach back to what may be lost

	// It is told only to a frozen ledger. One that is open in the epoch that a process before has seen has lost nothing
	// since, and what that process did may have been changed by others later.
	ifFrozen bool
}

// Result is what came of telling.
type Result struct {
	Stock

	Here     int64    // Unix ms: of this instance's last call that the ledger still knew
	Restored int      // records that this instance has put back, in all
	Fresh    int      // of these by this call
	Opened   bool     // this very call has opened the SKU
	Was      State    // what it goes back to; Frozen = an operator must open it; "" = not told
	Waits    []string // names of the instances that have not told all
	Partial  bool     // this instance's journal does not reach back to what may be lost
	Over     bool     // there is nothing more to tell
	Unknown  []string // serials that were put back, and whose outcome is unknown
}

// blocked reports that others must tell first.
func (s *Result) blocked() bool { return s.State == Frozen && len(s.Waits) > 0 }

// ByHand reports that an operator alone can open it.
func (s *Result) ByHand() bool {
	return s.State == Frozen && (s.Partial || s.Was == Frozen || s.Was == "" || s.Why == byOperator)
}

const byOperator = "operator"

// Pending returns the SKUs whose epoch has risen since this instance told what it knows.
func (r *Store) Pending() (skus []string) {
	if r.instance == "" {
		return nil
	}
	r.Seen.mu.RLock()
	defer r.Seen.mu.RUnlock()
	for sku, t := range r.Seen.all {
		if t.told().due {
			skus = append(skus, sku)
		}
	}
	return skus
}

// NoteUnknown notes that the outcome of an order is unknown.
func (r *Store) NoteUnknown(sku, serial string) { r.Log.NoteUnknown(sku, serial) }

// Corrects notes what the ledger of sku says of what was intended.
func (r *Store) Corrects(sku string, a Answer, op Op, items []Item, done []Done) {
	t := r.Seen.Find(sku)
	r.Log.Corrects(sku, a, t != nil && t.told().due, op, items, done)
}

// Recover tells the ledger of sku what this instance knows of its orders: first those that it took itself, then, when
// all others have done so too, what it has done to theirs. It is to be called again until the story is over. keep is
// until when tombstones are kept, in Unix ms.
func (r *Store) Recover(ctx context.Context, sku string, now, keep int64) (s Result, err error) {
	return r.report(ctx, sku, now, keep, false)
}

// Look finds out how a frozen ledger stands of which this instance knows nothing.
func (r *Store) Look(ctx context.Context, sku string, now int64) (Result, error) {
	return r.tell(ctx, sku, now, now, progress{}, nil)
}

// HandOver tells all at once, since this instance will not be there any more when the others have told. A refund of
// an order that they tell only later leaves a tombstone. What else was done to such an order is lost: it stays held,
// or sold, until its outcome is asked for or an operator decides.
func (r *Store) HandOver(ctx context.Context, sku string) error {
	now := time.Now()
	_, err := r.report(ctx, sku, now.UnixMilli(), now.Add(24*time.Hour).UnixMilli(), true)
	return err
}

// report is Recover; leaves says that others are not waited for. It ends where another epoch answers: that of an older
// ledger, on another server, or that of a SKU which froze again meanwhile. Whatever that one was told, all is still to
// be told.
func (r *Store) report(ctx context.Context, sku string, now, keep int64, leaves bool) (s Result, err error) {
	t := r.Seen.Find(sku)
	at := t.told()
	before := at.restored
	var unknown []string
	if s, err = r.dismiss(ctx, sku, now, keep, &at); err != nil || s.Over {
		t.setTold(at)
		return s, err
	}
	from := toldFrom(now, keep)
	if at.phase == 0 {
		all, changes := r.Log.entriesOf(sku, func(e *entry) bool { return !e.bare && e.changed > from })
		if s, err = r.tell(ctx, sku, now, keep, at.as(1), all); err != nil || s.Epoch != at.epoch {
			return s, err
		}
		unknown = unknownSerials(all)
		at.partial = r.omits(sku, from, s.Here, func(e *entry) bool { return !e.bare })
		at.phase, at.told, at.restored = 1, changes, s.Restored
	}
	if at.phase == 1 {
		s, err = r.tell(ctx, sku, now, keep, at.as(1), nil)
	}
	if err == nil && (leaves || at.phase == 2 || !s.blocked()) {
		s, err = r.tellRest(ctx, sku, now, keep, s.Here, &at)
	}
	if err == nil && s.Epoch != at.epoch {
		return s, nil
	}
	s.Restored, s.Fresh, s.Unknown = at.restored, at.restored-before, unknown
	s.Over = err == nil && at.phase == 2 && (s.State != Frozen || s.ByHand())
	at.due = !s.Over
	t.setTold(at)
	return s, err
}

// as is p in a phase.
func (p progress) as(phase int) progress {
	p.phase = phase
	return p
}

// toldFrom is since when an order must have changed to be told, Unix ms. What this instance did longer ago may have
// been given back elsewhere since, and the ledger may have forgotten that, as it does when keep is over: it must not
// come back. An instance that returns only then vouches for nothing. The clocks of instances may differ by the 24th
// part of keep, an hour of a day.
func toldFrom(now, keep int64) int64 { return now - (keep-now)/24*23 }

// dismiss ends a progress that is for a frozen ledger alone, where the ledger is open.
func (r *Store) dismiss(ctx context.Context, sku string, now, keep int64, at *progress) (s Result, err error) {
	if !at.ifFrozen {
		return s, nil
	}
	if s, err = r.tell(ctx, sku, now, keep, progress{}, nil); err != nil {
		return s, err
	}
	at.ifFrozen = false
	if s.Over = s.State != Frozen; s.Over {
		*at = progress{epoch: at.epoch}
	}
	return s, nil
}

// omits reports whether any of some orders is too old to be told, and not older than what is left of the ledger.
func (r *Store) omits(sku string, from, here int64, some func(*entry) bool) bool {
	all, _ := r.Log.entriesOf(sku, func(e *entry) bool {
		return e.changed <= from && e.changed >= here-clocksDiffer && some(e)
	})
	return len(all) > 0
}

// tellRest tells what is left to be told. here is when this instance last called what is left of the ledger; a journal
// that does not reach back so far, or whose orders of since then are too old to be told, can tell, but not vouch that
// it was all.
func (r *Store) tellRest(ctx context.Context, sku string, now, keep, here int64,
	at *progress) (s Result, err error) {
	from := toldFrom(now, keep)
	untold := func(e *entry) bool { return e.change > at.told || at.phase < 2 && e.bare }
	all, changes := r.Log.entriesOf(sku, func(e *entry) bool { return e.changed > from && untold(e) })
	at.partial = at.partial || at.phase < 2 && (r.omits(sku, from, here, untold) || !r.Log.reachesBack(here))
	phase := 2
	if at.partial {
		phase = 1
	}
	if s, err = r.tell(ctx, sku, now, keep, at.as(phase), all); err != nil {
		return s, err
	}
	s.Partial = at.partial
	at.phase, at.told, at.restored = 2, changes, at.restored+s.Restored
	return s, nil
}

// Known is an order that a database knows.
type Known struct {
	Item
	Status Status
	Due    int64        // Unix ms: from when on the resolver looks at a held one
	Done   StockVersion // in which it was refunded
}

// PutBack writes orders again that a database knows and the ledger has lost, as held, sold or refunded, by the rule of
// Merge: what the ledger has as final stays so. Refunded ones are remembered until keep, Unix ms.
func (r *Store) PutBack(ctx context.Context, sku string, now, keep int64, orders []Known) (err error) {
	defer describe(&err, "put back orders of", sku)
	if len(orders) == 0 {
		return nil
	}
	stock, _, err := r.ReadStock(ctx, sku)
	if err != nil {
		return err
	}
	epoch, all := max(stock.Epoch, stock.Sale), make([]entry, len(orders))
	for i, o := range orders {
		o.Cart = AnyCart
		all[i] = entry{item: o.Item, status: o.Status, deadline: o.Due, epoch: epoch,
			done: version{o.Done.Epoch, o.Done.Ver}}
	}
	_, err = r.tell(ctx, sku, now, keep, progress{}, all)
	return err
}

// tell makes as many calls as all needs; the last one says how far this instance is then.
func (r *Store) tell(ctx context.Context, sku string, now, keep int64, then progress,
	all []entry) (s Result, err error) {
	restored := 0
	for {
		part := all[:min(len(all), MaxItems)]
		all = all[len(part):]
		last := then.phase
		if len(all) > 0 {
			last = 0
		}
		args := append([]any{now, keep, last, then.epoch, r.Settle.Milliseconds(), len(part)}, columns(part)...)
		if s, err = r.recover(ctx, sku, nil, args); err != nil {
			return s, fmt.Errorf("recover %q: %w", sku, err)
		}
		restored += s.Restored
		if len(all) == 0 || then.phase > 0 && s.Epoch != then.epoch {
			s.Restored = restored
			return s, nil
		}
	}
}

// columns are entries as the script reads them.
func columns(all []entry) (args []any) {
	for _, of := range []func(*entry) any{
		func(e *entry) any { return e.item.Serial },
		func(e *entry) any { return e.item.User },
		func(e *entry) any { return unitsText(e.item.Quantity, e.item.Cart) },
		func(e *entry) any { return e.word() },
		func(e *entry) any { return e.deadline },
		func(e *entry) any { return e.epoch },
		func(e *entry) any { return e.done.epoch },
		func(e *entry) any {
			if e.done.ver == MaxNumber {
				return 0 // the caller has got an error, and asks again
			}
			return e.done.ver
		},
	} {
		for i := range all {
			args = append(args, of(&all[i]))
		}
	}
	return args
}

// unknownSerials are the serials whose outcome is unknown.
func unknownSerials(all []entry) (serials []string) {
	for i := range all {
		if all[i].unknown {
			serials = append(serials, all[i].item.Serial)
		}
	}
	return serials
}

// told is how far this instance has told.
func (t *SeenState) told() progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.progress
}

// setTold notes how far it is, unless the epoch rose once more.
func (t *SeenState) setTold(at progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch == at.epoch {
		t.progress = at
	}
}
