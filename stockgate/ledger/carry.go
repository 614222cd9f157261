package ledger

import (
	"context"
	"errors"
	"runtime"
	"time"

	"sluice/stockgate/link"
)

// round is one call's worth of orders, each serial once.
type round struct {
	tickets  []*ticket
	items    []Item
	codes    []Code
	sent     bool      // the store may have it
	adrift   bool      // so may it have a sending that was not answered, and that may arrive after one that was
	told     []bool    // somebody heard before that the serial is held, until this very deadline
	units    int64     // of all items
	deadline int64     // Unix ms; with the serial it tells this batch's hold from any other, where told is false
	view     *view     // what the reply said; nil = there was none
	err      error     // of the last sending, where there was none
	outs     []Outcome // by position

	one struct { // room for a single order, as most rounds have among many SKUs
		tickets [1]*ticket
		items   [1]Item
		codes   [1]Code
		told    [1]bool
		outs    [1]Outcome
	}
}

func newRound() *round {
	b := &round{}
	one := &b.one
	b.tickets, b.items, b.codes, b.told, b.outs = one.tickets[:0], one.items[:0], one.codes[:0], one.told[:0], one.outs[:0]
	return b
}

// carry takes those who wait to the store and brings them the answers, until nobody waits whom it may take.
func (d *Desk) carry(l *line) {
	b := newRound()
	for d.depart(l, b) {
		d.ask(l, b)
		d.deliver(l, b)
	}
}

// depart fills b with those who leave now, and reports whether there is anybody. Orders that are here already, but have
// not come as far as their line, come along: whoever can run is let run first, which takes no time where nobody can.
func (d *Desk) depart(l *line, b *round) bool {
	runtime.Gosched()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls-- // this one is none before it has somebody: while nothing is known, only the first call may go
	if l.calls > 0 && !l.full() || !d.take(d.o.Now(), l, b) {
		d.dispatch(l) // whoever attended one that came too late may look now
		return false
	}
	l.calls++
	d.dispatch(l)
	return true
}

// ask fills the codes of b. What a sending came to that was not answered is unknown, so it is sent again with the
// same serials and the same deadline, until somebody answers, or o.Tries or o.Resend are spent: then the codes are
// Unsure. A store that hangs keeps nobody waiting for more than one sending; a connection that broke is tried again.
func (d *Desk) ask(l *line, b *round) {
	sent := d.stamp(l, b)
	epoch, unsure, stale, first := sent.Epoch, false, false, d.o.Now()
	for try := 0; try < d.o.Tries; try++ {
		if unsure && (d.o.Now()-first >= int64(d.o.Resend) || !d.pause(d.ctx, resendAfter<<try)) {
			break
		}
		began := d.o.Now()
		hint, err := d.reserveAt(l, b, epoch)
		few := errors.Is(err, errFewReplicas)
		b.sent = b.sent || err == nil || !link.Unsent(err)
		if err != nil && !few {
			unsure, b.err = true, err
			b.adrift = b.sent
			continue
		}
		if b.codes[0] == StaleEpoch && !stale { // nothing was done: decide again once, by the epoch that it has
			epoch, stale = hint.Epoch, true
			try--
			continue
		}
		b.view, b.err = &view{Hint: hint, absent: b.codes[0] == UnknownSKU, at: began}, nil
		if unsure {
			d.reclaim(l, b)
		}
		d.replicated(l, b, few)
		d.compare(l, b, sent)
		return
	}
	b.settleFor(Unsure)
}

// stamp gives b its deadline, and returns the newest hint.
func (d *Desk) stamp(l *line, b *round) (newest Hint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.deadline = d.until()
	for _, it := range b.items {
		b.told = append(b.told, l.told(it.Serial, b.deadline))
	}
	if v := l.view.Load(); v != nil && !v.absent {
		newest = v.Hint
	}
	return newest
}

// resendAfter is the pause before a batch is sent again; it doubles.
const resendAfter = 5 * time.Millisecond

// settleFor gives all items one code.
func (b *round) settleFor(c Code) {
	for i := range b.codes {
		b.codes[i] = c
	}
}

// reserveAt makes the call.
func (d *Desk) reserveAt(l *line, b *round, epoch int64) (Hint, error) {
	d.calls.note(callReserve, len(b.items))
	return d.store.Reserve(d.term(), l.sku, epoch, d.o.Wall().UnixMilli(), b.deadline, b.items, b.codes)
}

// reclaim tells the units that an earlier sending of b has taken, whose answer was lost, from what is held already:
// only this batch has this deadline and this serial, unless an earlier one told somebody so. Those are new holds, and
// may be forwarded.
func (d *Desk) reclaim(l *line, b *round) {
	lost := false
	for i, code := range b.codes {
		if code != ReplayHeld || b.told[i] {
			continue
		}
		if lost {
			b.codes[i] = Unsure
			continue
		}
		r, ok, err := d.find(d.ctx, l, b.items[i].Serial)
		switch {
		case err != nil:
			lost = true
			b.codes[i] = Unsure
		case ok && r.Status == 'H' && r.Deadline == b.deadline:
			b.codes[i] = Held
		}
	}
}

// compare looks whether the ledger has forgotten what it said before b was sent, by whichever way that was heard. If
// so, nobody may buy until it is reconciled: the SKU is frozen, and what was held just now is given back. A Redis
// looks for itself before it takes a unit.
func (d *Desk) compare(l *line, b *round, sent Hint) {
	if sent.Ver == 0 || b.view.State == Lost || !b.view.absent && !b.view.before(sent) {
		return
	}
	d.lost.Add(1)
	d.o.Log.Error("ledger lost its history: the SKU is closed until it is reconciled", "sku", l.sku,
		"epoch", sent.Epoch, "ver", sent.Ver, "found_epoch", b.view.Epoch, "found_ver", b.view.Ver, "missing", b.view.absent)
	if b.view.absent {
		return // what does not exist sells nothing
	}
	b.distrust()
	ctx, cancel := context.WithTimeout(d.ctx, d.o.Timeout)
	defer cancel()
	found := view{Hint: sent, at: b.view.at}
	if b.view.State != Frozen { // else the store has noticed it, and a further epoch could outrun a ledger that is right
		if stock, err := d.store.SetState(ctx, l.sku, Frozen); err == nil {
			found.Hint = stock.Hint
		}
	}
	found.State = Frozen
	b.view = &found
	l.mu.Lock()
	defer l.mu.Unlock()
	l.see(d.o.Now(), &found) // even if it is older than what was known: what was known is gone
}

// deliver answers all of b.
func (d *Desk) deliver(l *line, b *round) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := d.o.Now()
	l.trying -= b.units
	for i := range b.tickets {
		b.outs = append(b.outs, d.decide(now, l, b, i))
	}
	if b.view != nil { // before the answers: who has heard one finds the latch as the answer says
		d.learn(now, l, b.view)
	}
	for i, t := range b.tickets {
		d.part(l, t, b.outs[i])
	}
	if d.trouble(l, b.err); b.view == nil {
		d.forsake(l)
	}
}

// decide keeps in mind what became of the order at place i, and returns the answer to it. mu is held.
func (d *Desk) decide(now int64, l *line, b *round, i int) Outcome {
	t, code := b.tickets[i], b.codes[i]
	l.events.count(code, 1)
	if (b.adrift && code.leavesRoom() || b.sent && code == Unsure) && !b.told[i] {
		d.stray(l, t.serial, b.deadline)
	}
	out := Outcome{Code: code, Serial: t.serial}
	switch code {
	case Held:
		out.Deadline = b.deadline
		t.keep(d, now, false)
		l.tell(t.serial, b.deadline, d.until())
	case ReplayHeld, ReplaySold:
		t.keep(d, now, code == ReplaySold)
	case SoldOut, UnknownSKU:
		out.Serial = ""
	case NotOnSale:
		out = b.view.Hint.refusal(d.o.Wall().UnixMilli())
	case StaleEpoch: // twice in a row
		out.Code = Overloaded
	}
	return out
}

// leavesRoom reports whether an earlier sending of an order that heard c would still take units where it arrives later, when some have
// come back. In a later epoch it would not, and where there is no ledger it finds none.
func (c Code) leavesRoom() bool { return c == SoldOut || c == NotOnSale || c == UserLimit }

// keep remembers that t's order is held or sold.
func (t *ticket) keep(d *Desk, now int64, sold bool) {
	t.until = now + int64(d.o.Hold) + int64(time.Minute)
	t.sold.Store(sold)
	d.remember(t.known)
}

// find looks a serial up.
func (d *Desk) find(ctx context.Context, l *line, serial string) (Record, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	d.calls.note(callFind, 1)
	return d.store.Find(ctx, l.sku, serial)
}

// until is the deadline of a hold that is made now, in Unix ms. It never goes back. Its last ten bits are the
// instance's mark, so that no two instances give the same serial the same deadline. For what one instance does within
// the second that is left, see line.told and Desk.strays; it never has a serial in two calls at once.
func (d *Desk) until() int64 {
	at := time.Now().Add(d.o.Hold).UnixMilli()&^(marks-1) + marks + d.o.Mark
	for {
		last := d.deadline.Load()
		if at <= last {
			return last
		}
		if d.deadline.CompareAndSwap(last, at) {
			return at
		}
	}
}

// marks is the number of instances that can be told from each other.
const marks = 1024
