package ledger

import (
	"context"
	"fmt"
	"time"
)

// settleFor is how long a frozen ledger stays so at least: an instance whose every mark was lost calls meanwhile.
const settleFor = 3 * time.Second

// telling is how far this instance has told a ledger what it knows, since its epoch rose.
type telling struct {
	due      bool  // it has not told all
	phase    int   // 0 nothing, 1 of the orders that it took itself, 2 what it has done to those of others too
	told     int64 // the changes of the journal that were told
	restored int   // records that were put back
	partial  bool  // the journal does not reach back to what may be lost
}

// raise begins anew where a ledger that was seen before is in a later epoch.
func (t *telling) raise(before int64) { *t = telling{due: before > 0} }

// story is what came of telling.
type story struct {
	Stock
	here     int64    // Unix ms: of this instance's last call that the ledger still knew
	restored int      // records that this instance has put back, in all
	fresh    int      // of these by this call
	opened   bool     // this very call has opened the SKU
	was      State    // what it goes back to; Frozen = an operator must open it; "" = not told
	waits    []string // names of the instances that have not told all
	partial  bool     // this instance's journal does not reach back to what may be lost
	over     bool     // there is nothing more to tell
	unknown  []string // serials that were put back, and of which nobody knows what became of them
}

// blocked reports that others must tell first.
func (s *story) blocked() bool { return s.State == Frozen && len(s.waits) > 0 }

// byHand reports that an operator alone can open it.
func (s *story) byHand() bool {
	return s.State == Frozen && (s.partial || s.was == Frozen || s.was == "" || s.Why == byOperator)
}

const byOperator = "operator"

// untold returns the SKUs whose epoch has risen since this instance told what it knows.
func (r *Redis) untold() (skus []string) {
	if r.instance == "" || !r.traces.raised.Swap(false) {
		return nil
	}
	defer func() {
		if len(skus) > 0 {
			r.traces.raised.Store(true) // until it is told
		}
	}()
	r.traces.mu.RLock()
	defer r.traces.mu.RUnlock()
	for sku, t := range r.traces.all {
		if t.tells().due {
			skus = append(skus, sku)
		}
	}
	return skus
}

// wonders notes that nobody knows what became of an order.
func (r *Redis) wonders(sku, serial string) { r.journal.wonders(sku, serial) }

// recover tells the ledger of sku what this instance knows of its orders: first those that it took itself, then, when
// all others have done so too, what it has done to theirs. It is to be called again until the story is over. keep is
// until when tombstones are kept, in Unix ms.
func (r *Redis) recover(ctx context.Context, sku string, now, keep int64) (s story, err error) {
	t := r.traces.find(sku)
	at, epoch := t.tells(), t.claim().epoch
	before := at.restored
	var unknown []string
	if at.phase == 0 {
		all, changes := r.journal.of(sku, func(e *entry) bool { return !e.bare && !e.adopted })
		if s, err = r.tell(ctx, sku, now, keep, 1, all); err != nil {
			return s, err
		}
		unknown = unknowns(all)
		at.phase, at.told, at.restored = 1, changes, s.restored
	}
	if at.phase == 1 {
		s, err = r.tell(ctx, sku, now, keep, 1, nil)
	}
	if err == nil && (at.phase == 2 || !s.blocked()) {
		s, err = r.conclude(ctx, sku, now, keep, s.here, &at)
	}
	s.restored, s.fresh, s.unknown = at.restored, at.restored-before, unknown
	s.over = err == nil && at.phase == 2 && (s.State != Frozen || s.byHand())
	at.due = !s.over
	t.tell(epoch, at)
	return s, err
}

// part tells all at once, since this instance will not be there any more when the others have told. What it has done to
// orders that they put back only later is lost: those stay held, or sold, until somebody decides.
func (r *Redis) part(ctx context.Context, sku string) error {
	t := r.traces.find(sku)
	at, epoch, now := t.tells(), t.claim().epoch, time.Now()
	keep := now.Add(24 * time.Hour).UnixMilli()
	var own []entry
	if at.phase == 0 {
		own, at.told = r.journal.of(sku, func(e *entry) bool { return !e.bare && !e.adopted })
	}
	s, err := r.tell(ctx, sku, now.UnixMilli(), keep, 1, own)
	if err == nil {
		_, err = r.conclude(ctx, sku, now.UnixMilli(), keep, s.here, &at)
	}
	if err == nil {
		at.due = false
		t.tell(epoch, at)
	}
	return err
}

// conclude tells what is left to be told. here is when this instance last called what is left of the ledger; a journal
// that does not reach back so far can tell, but not vouch that it was all.
func (r *Redis) conclude(ctx context.Context, sku string, now, keep, here int64, at *telling) (s story, err error) {
	all, changes := r.journal.of(sku, func(e *entry) bool {
		return e.change > at.told || at.phase < 2 && (e.bare || e.adopted)
	})
	at.partial = at.partial || at.phase < 2 && !r.journal.since(here)
	phase := 2
	if at.partial {
		phase = 1
	}
	if s, err = r.tell(ctx, sku, now, keep, phase, all); err != nil {
		return s, err
	}
	s.partial = at.partial
	at.phase, at.told, at.restored = 2, changes, at.restored+s.restored
	return s, nil
}

// tell makes as many calls as all needs; the last one says how far this instance is.
func (r *Redis) tell(ctx context.Context, sku string, now, keep int64, phase int, all []entry) (s story, err error) {
	restored := 0
	for {
		part := all[:min(len(all), maxItems)]
		all = all[len(part):]
		last := phase
		if len(all) > 0 {
			last = 0
		}
		args := append([]any{r.events, now, keep, last, r.settle.Milliseconds(), len(part)}, columns(part)...)
		reply, err := r.run(ctx, "recover", sku, args...)
		if err == nil && reply == nil {
			err = ErrUnknownSKU
		}
		if err == nil {
			s, err = storyOf(reply)
		}
		if err != nil {
			return s, fmt.Errorf("recover %q: %w", sku, err)
		}
		restored += s.restored
		if len(all) == 0 {
			s.restored = restored
			return s, nil
		}
	}
}

// columns are entries as the script reads them.
func columns(all []entry) (args []any) {
	for _, of := range []func(*entry) any{
		func(e *entry) any { return e.item.Serial },
		func(e *entry) any { return e.item.User },
		func(e *entry) any { return e.item.Quantity },
		func(e *entry) any { return e.word() },
		func(e *entry) any { return e.deadline },
		func(e *entry) any { return e.epoch },
		func(e *entry) any { return e.done.Epoch },
		func(e *entry) any { return e.done.Ver },
	} {
		for i := range all {
			args = append(args, of(&all[i]))
		}
	}
	return args
}

// storyOf reads the reply of recover.lua.
func storyOf(reply []any) (s story, err error) {
	if len(reply) != stockSize+4 {
		return s, fmt.Errorf("%d values came back for a story", len(reply))
	}
	var opened int64
	if s.Stock, opened, err = stockOf(reply[:stockSize]); err != nil {
		return s, err
	}
	was, ok1 := reply[stockSize+1].(string)
	restored, ok2 := reply[stockSize+2].(int64)
	waits, ok3 := reply[stockSize+3].([]any)
	here, ok4 := reply[stockSize].(int64)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return s, fmt.Errorf("the story %v cannot be read", reply[stockSize:])
	}
	for _, name := range waits {
		s.waits = append(s.waits, fmt.Sprint(name))
	}
	s.here, s.was, s.restored, s.opened = here, State(was), int(restored), opened == 1
	return s, nil
}

// unknowns are the serials of which nobody knows what became of them.
func unknowns(all []entry) (serials []string) {
	for i := range all {
		if all[i].unknown {
			serials = append(serials, all[i].item.Serial)
		}
	}
	return serials
}

// tells is how far this instance has told.
func (t *trace) tells() telling {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.telling
}

// tell notes how far it is, unless the epoch rose once more since it was epoch.
func (t *trace) tell(epoch int64, at telling) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch == epoch {
		t.telling = at
	}
}
