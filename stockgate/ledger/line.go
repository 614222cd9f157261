package ledger

import (
	"math"
	"sync"
	"sync/atomic"
)

const (
	mostItems = 256 // orders in one call
	mostCalls = 2   // of one SKU under way at once
)

// line is where the orders of one SKU wait for each other's calls. What a refusal reads that the latch does not decide comes
// first, in one line of the processor's cache.
type line struct {
	sku     string
	hash    uint64
	latch   *latch                 // in its door
	view    atomic.Pointer[view]   // written under mu
	prober  atomic.Pointer[ticket] // who looks whether the latch is still right; nil = nobody; written under mu
	roster  atomic.Pointer[roster] // who has won, since it closed; written under mu
	reading atomic.Bool            // somebody reads the next roster; written under mu

	looks  pace         // of calls that are made although the SKU is closed
	rests  atomic.Int64 // ns: the roster is not read before; written under mu
	place  int          // among all lines, whose mutex guards it
	events *events

	behind   bool                    // its changes are not acknowledged; the watch's alone
	counted  atomic.Pointer[counted] // as the last audit found it; nil = not yet, or there is no ledger
	watched  atomic.Bool             // its holds are looked after even if nobody asks for it
	expected atomic.Bool             // it has a ledger, although nobody has asked for it yet

	mu      sync.Mutex
	gone    bool // removed from lines
	queue   []*ticket
	looking []*ticket          // who may be a buyer that comes again, at most mostItems of them, and who probes
	waiting []*ticket          // until the winners are read
	asked   map[string]*ticket // by serial: who waits or is in a call
	calls   int
	trying  int64             // units in calls
	holds   map[string]bool   // serials of which somebody was told that they are held until heldTo
	heldTo  int64             // Unix ms: the deadline of holds that are made now
	doubts  map[string]*doubt // by serial
	owed    []settlement      // in order
	settles bool              // somebody works on owed
	mirror  mirrored

	troubled bool // the log says that the store does not do what it is asked

	shut  atomic.Int64 // ns: until when the shop says that all is sold; see Shut
	shown showing
}

// ticket is one order that waits. Its order may be read until it is answered.
type ticket struct {
	*known
	order     Order
	item      Item
	at        int64     // ns: since when it waits
	looked    bool      // a glance was taken for it
	cause     error     // why the last one saw nothing
	followers []*ticket // of the same serial
	attending []*ticket // who wait for what this one finds out, as the prober; the mutex of the line guards it
	out       chan Outcome
}

func (t *ticket) answer(o Outcome) { t.out <- o } // never blocks: there is room for one, and there is only one

// join lets t wait on l, or answers it at once. It reports false when l has been removed.
func (d *Desk) join(now int64, l *line, t *ticket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.gone:
		return false
	case d.closed.Load():
		t.answer(Outcome{Code: Overloaded})
	case l.follow(t):
	case d.strays(l, t.serial):
		t.answer(Outcome{Code: Unsure, Serial: t.serial})
	default:
		l.asked[t.serial] = t
		d.place(now, l, t)
		d.dispatch(l)
	}
	return true
}

// follow lets t share the fate of an order of its own serial that waits or is in a call here: no two calls of one
// desk ever carry the same serial at the same time. mu is held.
func (l *line) follow(t *ticket) bool {
	if first := l.asked[t.serial]; first != nil {
		first.followers = append(first.followers, t)
		return true
	}
	return false
}

// place lets t wait for units, for a look or until the winners are read, or answers it. mu is held, and t is among
// those who asked.
func (d *Desk) place(now int64, l *line, t *ticket) {
	v := l.view.Load()
	code, closed := v.closes(now, t.quantity)
	if !closed {
		d.stand(l, t)
		return
	}
	k := d.recall(now, l, &t.order)
	way := d.way(now, t.at-v.at, l, v, &t.order, k)
	if way == probes && !t.looked && !d.probers.take(now) {
		way = d.way(now, t.at-v.at, l, v, &t.order, k) // probers of other SKUs were faster
	}
	switch {
	case way == answered:
	case way == probes && !t.looked:
		d.probe(l, t, k)
		return
	case t.looked: // what a glance has not settled the order finds out itself
		l.prober.CompareAndSwap(nil, t)
		l.looking = append(l.looking, t)
		return
	case way == attends:
		d.attend(now, l, t)
		return
	case way == waits:
		d.enlist(now, l) // unless somebody did
		d.wait(now, l, t)
		return
	case way == looks:
		if l.mayLook(now) {
			l.looking = append(l.looking, t)
			return
		}
	}
	d.part(l, t, l.latched(now, v, code, &t.order, k))
}

// stand lets t wait for units. mu is held.
func (d *Desk) stand(l *line, t *ticket) {
	if len(l.queue) < d.o.MaxQueue {
		l.queue = append(l.queue, t)
		return
	}
	d.part(l, t, Outcome{Code: Overloaded})
	l.events.count(Overloaded, 1)
}

// mayLook reports whether one more order may have a look into the store although the SKU is closed.
func (l *line) mayLook(now int64) bool {
	n := len(l.looking)
	return n > 0 && n < mostItems || n == 0 && l.looks.take(now)
}

// dispatch starts the call that may leave at now: a first one when none is under way, a second one when it would be full.
// mu is held.
func (d *Desk) dispatch(l *line) {
	if (l.calls == 0 || l.calls < mostCalls && l.full()) && l.ready() {
		l.calls++
		d.work.Go(func() { d.carry(l) })
	}
}

// ready reports whether somebody may leave. mu is held.
func (l *line) ready() bool {
	return len(l.looking) > 0 || len(l.queue) > 0 && l.queue[0].quantity <= l.room()
}

func (l *line) full() bool { return len(l.queue)+len(l.looking) >= mostItems }

// take fills b with what may leave at now: those who look, then those for whom the newest hint leaves units.
// It reports whether there is anybody. mu is held.
func (d *Desk) take(now int64, l *line, b *round) bool {
	*b = round{tickets: b.tickets[:0], items: b.items[:0], codes: b.codes[:0], told: b.told[:0], outs: b.outs[:0]}
	n := min(len(l.looking), mostItems)
	for _, t := range l.looking[:n] {
		d.admit(now, l, b, t)
	}
	l.looking = append([]*ticket(nil), l.looking[n:]...) // hardly ever anybody: very many lines keep no room for them
	room := l.room()
	for len(l.queue) > 0 && len(b.items) < mostItems {
		t := l.queue[0]
		if t.quantity > room {
			break
		}
		l.queue[0] = nil
		l.queue = l.queue[1:]
		if d.admit(now, l, b, t) {
			room -= t.quantity
		}
	}
	l.trying += b.units
	return len(b.items) > 0
}

// room is how many more units may be tried. While nothing is known, one call finds out.
func (l *line) room() int64 {
	switch v := l.view.Load(); {
	case v != nil:
		return v.Free - l.trying
	case l.calls == 0:
		return math.MaxInt64
	}
	return 0
}

// admit puts t into b, unless it waited for too long.
func (d *Desk) admit(now int64, l *line, b *round, t *ticket) bool {
	if d.late(now, l, t) {
		return false
	}
	b.tickets = append(b.tickets, t)
	b.items = append(b.items, t.item)
	b.codes = append(b.codes, Unsure)
	b.units += t.quantity
	return true
}

// late answers t if it has waited for too long. mu is held.
func (d *Desk) late(now int64, l *line, t *ticket) bool {
	if now-t.at <= int64(d.o.MaxWait) {
		return false
	}
	d.part(l, t, Outcome{Code: Overloaded})
	l.events.count(Overloaded, 1+len(t.followers))
	return true
}

// part answers t and those who follow it. mu is held.
func (d *Desk) part(l *line, t *ticket, out Outcome) {
	delete(l.asked, t.serial)
	if l.prober.Load() == t {
		l.prober.Store(nil)
	}
	for _, f := range t.followers {
		f.answer(f.after(t, out))
	}
	t.answer(out)
	if len(t.attending) > 0 {
		d.attended(l, t, out.Code != Unsure)
	}
}

// after is the answer to an order when another one of its serial was answered with out.
func (t *ticket) after(first *ticket, out Outcome) Outcome {
	switch out.Code {
	case Held, ReplayHeld, ReplaySold:
		if t.user != first.user || t.quantity != first.quantity {
			return Outcome{Code: OtherOrder, Serial: out.Serial}
		}
		if out.Code == Held {
			return Outcome{Code: ReplayHeld, Serial: out.Serial}
		}
	}
	return out
}

// tell notes that somebody hears that serial is held until a deadline, while holds that are made now are until then.
// Older ones need not be remembered: no call has their deadline any more. mu is held.
func (l *line) tell(serial string, deadline, then int64) {
	if deadline < then {
		return
	}
	if l.heldTo != deadline {
		l.heldTo, l.holds = deadline, make(map[string]bool)
	}
	l.holds[serial] = true
}

// told reports whether somebody heard that serial is held until a deadline of holds that are made now: an earlier
// order, which may have been forwarded. mu is held.
func (l *line) told(serial string, deadline int64) bool {
	return l.heldTo == deadline && l.holds[serial]
}

// learn takes in what a reply said, and answers those for whom no unit is left. mu is held.
func (d *Desk) learn(now int64, l *line, next *view) {
	if old := l.view.Load(); old.outlives(next) {
		return
	}
	scheduled := *next // which may be published already
	scheduled.schedule(d.o.Wall(), d.o.Now())
	if _, closed := scheduled.closes(now, 1); closed && next.at < d.deaf.Load() {
		d.age(now, &scheduled)
	}
	l.see(now, &scheduled)
	d.reflect(l, &scheduled)
	d.enlist(now, l)
	d.shed(now, l)
}

// shed takes those out of the queue for whom the newest hint leaves no unit. mu is held.
func (d *Desk) shed(now int64, l *line) {
	v := l.view.Load()
	waiting := l.queue
	l.queue = nil
	for _, t := range waiting {
		if _, closed := v.closes(now, t.quantity); closed {
			d.place(now, l, t)
		} else {
			l.queue = append(l.queue, t)
		}
	}
}
