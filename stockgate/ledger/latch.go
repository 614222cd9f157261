package ledger

import "time"

// view is what the newest reply said of a SKU. It is never changed once it is published.
type view struct {
	Hint
	absent bool  // there is no ledger
	at     int64 // ns of the caller's clock: when the call behind it was made
}

// closes tells why units cannot be had by what v knows. ok is false when they may be had, or nothing is known.
func (v *view) closes(units int64) (code Code, ok bool) {
	switch {
	case v == nil:
		return 0, false
	case v.absent:
		return UnknownSKU, true
	case v.State != On:
		return NotOnSale, true
	}
	return SoldOut, v.Free < units
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

// old reports whether somebody is to look at now whether v still holds.
func (d *Desk) old(now int64, v *view) bool {
	if v.State == Doubted {
		return now-v.at > min(d.memory, doubtFor)
	}
	return now-v.at > d.memory
}

// Closed answers from memory alone, at once, and writes nothing: what cannot be had at now (ns of Options.Now)
// by the newest reply of the store. It reports false when the order is to be passed on to Reserve: units may be
// free, or the answer is old, or the order could be a buyer's that comes again.
//
// Who has won must never hear that all is sold out. So an order whose serial or user this desk knows, and an
// order with a key of the client's, which another instance may know, is passed on while a look into the store
// costs little: in at most Looks calls a second for a SKU, of at most 256 orders each.
// Past that the known hear what they won, and the rest, which could be anybody, hear that the desk is
// overloaded: true of everybody. Invented keys can so cost neither Redis its peace nor a buyer the unit.
func (d *Desk) Closed(now int64, o Order) (Outcome, bool) {
	l := d.lines.find(o.SKU)
	if l == nil {
		return Outcome{}, false
	}
	v := l.view.Load()
	code, closed := v.closes(o.Quantity)
	if !closed || d.old(now, v) && !l.probing.Load() {
		return Outcome{}, false
	}
	k := d.recall(now, l, &o)
	if code != UnknownSKU && (k != nil || len(o.Key) > 0) && l.looks.open(now) {
		return Outcome{}, false
	}
	return latched(v, code, &o, k), true
}

// latched is the answer to an order for units that v closes, when the store is not to be asked.
func latched(v *view, code Code, o *Order, k *known) Outcome {
	switch {
	case code == UnknownSKU:
		return Outcome{Code: code}
	case k != nil:
		return k.replay(o)
	case len(o.Key) > 0:
		return Outcome{Code: Overloaded}
	}
	return Outcome{Code: code, State: v.State}
}
