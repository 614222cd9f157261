package ledger

import (
	"context"
	"errors"
	"time"
)

// roster is who has won a SKU, through whichever instance: every order that was held or sold at a version, but for
// those that were given back while it was read. It is never changed once it is published.
//
// It vouches that nobody else has won for as long as no unit was taken since: a unit that came back and was sold again
// shows in Hint.Taken. Between that sale elsewhere and the next reply or hint here, somebody may have won who is not in
// it; so for who sends a key the reply must be fresh.
type roster struct {
	epoch, ver int64
	whole      bool              // false when there was no room for all, or no time
	late       bool              // there was no time: they are read again
	serials    map[string]*known // all of them
	users      map[string][]*known
	names      uint64 // the bits of all names by which won finds an order
}

// covers reports whether whoever had won by what v says was there to be read.
func (r *roster) covers(v *view) bool {
	return r != nil && v.Taken != 0 && r.epoch == v.Epoch && v.Taken <= r.ver
}

// vouches reports whether whoever is not in r has not won, by what v says.
func (r *roster) vouches(v *view) bool { return r.covers(v) && r.whole }

// leaves reports whether o, to which v says code, may have won all the same, although it is not in r. Where the winners are too many it is
// believed of keys alone: all others would hear for the rest of a sale that they may come again. Nor do they need it to be told
// that the sale is paused or over: that is true of winners as well.
func (r *roster) leaves(v *view, code Code, o *Order) bool {
	return len(o.Key) > 0 && !r.vouches(v) || len(o.User) > 0 && code == SoldOut && !r.covers(v)
}

// won finds the order in r that o may repeat, or nil.
func (d *Desk) won(r *roster, o *Order) *known {
	switch {
	case r == nil:
		return nil
	case len(o.Key) > 0:
		return r.serials[string(o.Key)]
	case len(o.User) > 0:
		if of := r.users[string(o.User)]; of != nil {
			return d.turnOf(o, of)
		}
	}
	return nil
}

// turnOf finds, among the orders that o's user has won, the one that this order without a key is or repeats: the last
// of its turns, as the one before must be sold.
func (d *Desk) turnOf(o *Order, of []*known) *known {
	var last *known
	bought := int64(0)
	for g, left := 0, len(of); g < mostGenerations && left > 0; g++ {
		serial := d.derive(o.SKU, o.User, g)
		for _, k := range of {
			if k.serial != serial {
				continue
			}
			last = &known{line: k.line, serial: serial, user: k.user, quantity: k.quantity, derived: true, generation: g, bought: bought}
			last.sold.Store(k.sold.Load())
			bought += k.quantity
			left--
		}
	}
	return last
}

// enlist sees to it that the winners are known while l is closed. mu is held.
func (d *Desk) enlist(now int64, l *line) {
	v := l.view.Load()
	if _, closed := v.closes(now, 1); !closed || v.blank() {
		d.dismiss(l)
		return
	}
	if !l.unread(now, v) || l.reading.Load() || d.closed.Load() {
		return
	}
	d.dismiss(l)
	l.reading.Store(true)
	d.work.Go(func() { d.read(l) })
}

// unread reports whether it is time to read who has won what v closes.
func (l *line) unread(now int64, v *view) bool {
	_, closed := v.closes(now, 1)
	if !closed || v.blank() || now+longestRest < l.rests.Load() {
		return false
	}
	r := l.roster.Load()
	return !r.covers(v) || r.late
}

// dismiss drops the roster of l. mu is held.
func (d *Desk) dismiss(l *line) {
	if r := l.roster.Load(); r != nil {
		l.unlatch()
		l.roster.Store(nil)
		d.winners.Add(-int64(len(r.serials)))
	}
}

// wait lets t wait until the winners are read, unless it has waited for too long. mu is held.
func (d *Desk) wait(now int64, l *line, t *ticket) {
	if l.reading.Load() && now-t.at <= int64(d.o.MaxWait) && len(l.waiting) < d.o.MaxQueue {
		l.waiting = append(l.waiting, t)
		return
	}
	d.part(l, t, Outcome{Code: Overloaded})
	l.events.count(Overloaded, 1)
}

// Reading the winners takes no more than a part of Redis' time: for so many times as long as it took, and for so long
// when it failed, they are not read again. Orders wait for the end of that only where it is near.
const (
	restFor      = 20
	restFromFail = int64(time.Second)
	longestRest  = int64(100 * time.Millisecond)
)

// read reads the winners, and finds its place for whoever waited for that.
func (d *Desk) read(l *line) {
	if rest := l.rests.Load() - d.o.Now(); rest > 0 {
		d.pause(d.ctx, time.Duration(rest))
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.o.MaxWait) // as long as an order may wait
	defer cancel()
	var r *roster
	var hint Hint
	err := d.stepAside(ctx)
	began := d.o.Now()
	if err == nil {
		r, hint, err = d.winnersOf(ctx, l)
		<-d.aside
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := d.o.Now()
	l.rests.Store(now + restFor*(now-began))
	if err != nil {
		l.rests.Store(now + max(restFor*(now-began), restFromFail))
	} else {
		l.roster.Store(r)
		l.relatch(now)
		d.learn(now, l, &view{Hint: hint, at: began})
	}
	l.reading.Store(false)
	waiting := l.waiting
	l.waiting = nil
	for _, t := range waiting {
		d.place(now, l, t)
	}
	d.dispatch(l)
}

// errNoLedger is the cause when there is none of which to read.
var errNoLedger = errors.New("there is no ledger")

// stepAside waits for the right to a call that no order waits for; who has it gives it back.
func (d *Desk) stepAside(ctx context.Context) error {
	select {
	case d.aside <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// winnersOf reads who has won, and the hint that was the newest before.
func (d *Desk) winnersOf(ctx context.Context, l *line) (*roster, Hint, error) {
	d.calls.note(callRecords, 1)
	stock, ok, err := d.store.Look(ctx, l.sku)
	if err == nil && !ok {
		err = errNoLedger
	}
	if err != nil {
		return nil, Hint{}, err
	}
	r, some := &roster{epoch: stock.Epoch, ver: stock.Ver, whole: true}, false
	err = d.store.Records(ctx, l.sku, func(rec Record) bool {
		some = true
		if rec.Status == released {
			return true
		}
		r.whole = d.enter(l, r, rec)
		return r.whole
	})
	if some && err != nil && ctx.Err() != nil { // it answers: there are more than can be read in that time
		r.whole, r.late, err = false, true, nil
	}
	if err != nil || !r.whole {
		d.winners.Add(-int64(len(r.serials)))
		r.serials, r.users = nil, nil
	}
	return r, stock.Hint, err
}

// enter puts an order into r, unless there is no room.
func (d *Desk) enter(l *line, r *roster, rec Record) bool {
	if r.serials[rec.Serial] != nil {
		return true
	}
	if d.winners.Add(1) > int64(d.o.MaxWinners) {
		d.winners.Add(-1)
		return false
	}
	k := &known{line: l, serial: rec.Serial, user: rec.User, quantity: rec.Quantity}
	k.sold.Store(rec.Status == sold)
	if r.serials == nil { // where nobody has won there is nothing for a refusal to read
		r.serials, r.users = make(map[string]*known), make(map[string][]*known)
	}
	r.serials[k.serial] = k
	r.names |= bit(d.serials.hash([]byte(k.serial)))
	if len(k.serial) == derivedLength && k.user != "" {
		r.users[k.user] = append(r.users[k.user], k)
		r.names |= bit(d.users.hash([]byte(k.user)))
	}
	return true
}
