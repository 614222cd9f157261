package ledger

import (
	"math"
	"sync/atomic"
	"time"
)

// view is what the newest reply said of a SKU. It is never changed once it is published.
type view struct {
	Hint
	absent bool  // there is no ledger
	at     int64 // ns of the caller's clock: when the call behind it was made
	from   int64 // ns of that clock: when it opens, as far as known
	until  int64 // ns of that clock: when it closes; forever = never
}

// closes tells why units cannot be had at now by what v knows. ok is false when they may be had, or nothing is known.
func (v *view) closes(now, units int64) (code Code, ok bool) {
	switch {
	case v == nil:
		return 0, false
	case v.absent:
		return UnknownSKU, true
	case v.State != On, now < v.from, now >= v.until:
		return NotOnSale, true
	}
	return SoldOut, v.Free < units
}

// blank reports that nobody can say who has won: there is no ledger, or none that may be believed now.
func (v *view) blank() bool { return v.absent || v.State == Lost || v.State == Doubted }

// open reports whether anything can be had at now, if only one unit: then nobody reads who has won.
func (v *view) open(now int64) bool {
	_, closed := v.closes(now, 1)
	return !closed
}

// before reports whether h is older than other.
func (h Hint) before(other Hint) bool {
	return h.Epoch < other.Epoch || h.Epoch == other.Epoch && h.Ver < other.Ver
}

// outlives reports whether v is to be kept although next came later: calls overtake each other.
func (v *view) outlives(next *view) bool {
	return v != nil && !v.absent && !next.absent && next.State != Lost && next.before(v.Hint)
}

// doubtFor is how long a doubt is believed, in ns: it ends by itself, soon.
const doubtFor = int64(50 * time.Millisecond)

// old reports whether somebody is to look whether v, of such an age in ns, still holds.
func (d *Desk) old(age int64, v *view) bool {
	if v.State == Doubted {
		return age > min(d.memory, doubtFor)
	}
	return age > d.memory
}

// latch is what nearly every refusal hangs on where few have won, as of each of very many SKUs: that no unit of a SKU is to be had, and that whoever is not one of a few has won
// none. It says what the view and the roster of its line say, in three numbers; where it does not hold, and for whoever has the bit of a
// winner, these decide: with 35 winners two of three who come.
type latch struct {
	at      atomic.Int64  // ns: when the call behind the view was made
	until   atomic.Int64  // ns: when the hours of the SKU end
	winners atomic.Uint64 // a bit for each name of a winner; everybody = it does not hold
}

const everybody = math.MaxUint64

// bit is that of a winner whose name has hash.
func bit(hash uint64) uint64 { return 1 << (hash >> 58) }

// see publishes a view. mu is held.
func (l *line) see(now int64, v *view) {
	l.view.Store(v)
	l.relatch(now)
}

// relatch makes the latch say what view and roster say. Its winners are written first and last, and read last: whoever
// sees a part of what is written finds them no older than the rest. mu is held.
func (l *line) relatch(now int64) {
	l.unlatch()
	v, r := l.view.Load(), l.roster.Load()
	if code, closed := v.closes(now, 1); closed && code == SoldOut && r.vouches(v) {
		l.latch.at.Store(v.at)
		l.latch.until.Store(v.until)
		l.latch.winners.Store(r.names)
	}
}

// unlatch has view and roster decide. mu is held.
func (l *line) unlatch() { l.latch.winners.Store(everybody) }

// bars reports whether the latch alone says that o hears that all is sold out: whatever else is known of its SKU, whose line
// has hash, says the same, and nobody is to look.
func (d *Desk) bars(now int64, t *latch, hash uint64, o *Order) bool {
	age, open := now-t.at.Load(), now < t.until.Load()
	winners := t.winners.Load()
	if !open || winners == everybody || age > d.memory && d.probers.open(now) {
		return false
	}
	names, name := d.users, o.User
	if len(o.Key) > 0 {
		names, name = d.serials, o.Key
	}
	switch {
	case len(o.Key) > 0 && age > d.fresh:
		return false
	case len(name) == 0:
		return true
	}
	of := names.hash(name)
	return winners&bit(of) == 0 && !names.tagged(of^hash)
}

// Closed answers from memory alone, at once, and writes nothing: what cannot be had at now (ns of Options.Now)
// by the newest reply of the store. It reports false when the order is to be passed on to Reserve: units may be
// free, or the answer is old, or the order could be a buyer's that comes again.
//
// Who has won must never hear that all is sold out. So the desk reads who has won when a SKU closes, through whichever
// instance. Who is among them is passed on while a look into the store costs little, in at most Looks calls a second
// for a SKU, of at most 256 orders each, and past that hears what was won; all others hear at once that nothing is
// left. While the winners are read, orders wait. Where they could not be read, or are not read again yet, an order has a
// look like a winner's, and past Looks hears that the desk is overloaded: true of everybody. So does, where they are too
// many to be kept, or to be read in time, an order with a key of the client's, and somebody who wants more units than the few that are free; who wants
// one without a key hears, past Looks, that nothing is left. Invented keys can so cost neither Redis its peace nor a buyer the unit.
func (d *Desk) Closed(now int64, o Order) (Outcome, bool) {
	door, hash := d.lines.door(o.SKU)
	switch {
	case door == nil:
		return Outcome{}, false
	case d.bars(now, &door.latch, hash, &o):
		return Outcome{Code: SoldOut, State: On}, true
	}
	return d.judge(now, door.line, &o)
}

// judge is Closed where the latch does not decide.
func (d *Desk) judge(now int64, l *line, o *Order) (Outcome, bool) {
	v := l.view.Load()
	code, closed := v.closes(now, o.Quantity)
	if !closed {
		return d.refused(now, l, o)
	}
	k := d.recall(now, l, o)
	switch d.way(now, now-v.at, l, v, o, k) {
	case probes, waits, attends:
		return Outcome{}, false
	case looks:
		if l.looks.open(now) {
			return Outcome{}, false
		}
	}
	return l.latched(now, v, code, o, k), true
}

// way is what becomes of an order for units that are closed.
type way int

const (
	answered way = iota // from memory
	probes              // it finds out whether the latch is still right
	looks               // it may be a buyer's that comes again: the store is asked, if that may be
	waits               // until the winners are read
	attends             // somebody finds out already whether the latch is still right
)

// way decides by the newest view, how old that was in ns when the order came, and by what is known of the order. Of very many closed SKUs not each is looked at as
// soon as what is known of it is old: a crowd over all of them would be a call of the store each, and news tell of units
// that come back before.
func (d *Desk) way(now, age int64, l *line, v *view, o *Order, k *known) way {
	probing := l.prober.Load() != nil
	switch {
	case !probing && d.old(age, v) && (v.State == Doubted || d.probers.open(now)):
		return probes
	case v.blank(), len(o.Key)+len(o.User) == 0:
		return answered
	case k != nil:
		return looks
	case l.roster.Load().vouches(v):
		switch {
		case len(o.Key) == 0, age <= d.fresh:
			return answered
		case probing:
			return attends
		}
		return probes
	case l.reading.Load(), l.unread(now, v):
		return waits
	}
	return looks
}

// latched is the answer to an order for units that v closes, when the store is not to be asked.
func (l *line) latched(now int64, v *view, code Code, o *Order, k *known) Outcome {
	switch {
	case code == UnknownSKU:
		return Outcome{Code: code}
	case k != nil:
		return k.replay(o)
	case !v.blank() && l.roster.Load().leaves(v, code, o), len(o.User) > 0 && v.open(now):
		return Outcome{Code: Overloaded}
	}
	return v.refusal(now, code)
}
