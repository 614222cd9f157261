package ledger

import (
	"context"
	"time"
)

// settlement is what the ledger still has to be told of one order.
type settlement struct {
	item Item
	op   Op
	paid bool // the store has it
}

const (
	firstRetry = 25 * time.Millisecond
	lastRetry  = 2 * time.Second

	// Nobody waits for a settlement. After a call with several of them the next one therefore waits for gather, unless
	// there is half a call's worth already: what a call costs Redis is then divided among more orders.
	gather  = 5 * time.Millisecond
	several = 8
)

// Settle tells the ledger what became of an order, now or as soon as it can be told: it is repeated until the store
// has it, in the order of the calls for one serial. User and Quantity are needed for Adopt alone.
//
// It returns at once while there is room for the settlement. It waits for room for at most SettleWait. What finds
// none, what the store did not have when Close gave up, and what comes after Close is written to the log with its
// serial and op, at error level: a hold stays held then, and the resolver finds it.
func (d *Desk) Settle(sku string, it Item, op Op) {
	s := settlement{item: it, op: op}
	l := d.open([]byte(sku))
	if l == nil {
		d.spill(sku, s, "too many SKUs")
		return
	}
	if !d.reserveRoom() {
		d.spill(sku, s, "too many settlements wait")
		return
	}
	for !d.owe(l, s) {
		if d.closed.Load() {
			<-d.room
			d.spill(sku, s, "the desk is closed")
			return
		}
		if l = d.open([]byte(sku)); l == nil {
			<-d.room
			d.spill(sku, s, "too many SKUs")
			return
		}
	}
}

// Decided says that the store has op for a serial already, by another way than Settle: nothing is sent, and nobody asks
// about it any more.
func (d *Desk) Decided(sku, serial string, op Op) {
	l := d.lines.find([]byte(sku))
	if l == nil {
		return
	}
	d.settled(d.o.Now(), l, serial, op)
	l.mu.Lock()
	defer l.mu.Unlock()
	d.undoubt(l, serial)
}

// reserveRoom waits for room for one settlement.
func (d *Desk) reserveRoom() bool {
	select {
	case d.room <- struct{}{}:
		return true
	default:
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.o.SettleWait)
	defer cancel()
	select {
	case d.room <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// owe queues s, for which there is room. It reports false when the desk is closed or l was removed.
func (d *Desk) owe(l *line, s settlement) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone || d.closed.Load() {
		return false
	}
	l.owed = append(l.owed, s)
	if !l.settles {
		l.settles = true
		d.work.Go(func() { d.settle(l) })
	}
	return true
}

// settle tells the store what is owed on l, until nothing is.
func (d *Desk) settle(l *line) {
	wait := firstRetry
	for {
		due := d.due(l)
		if due == nil {
			return
		}
		hint, err := d.finish(l, due)
		l.mu.Lock()
		d.trouble(l, err)
		l.mu.Unlock()
		if err == nil {
			wait = firstRetry
			d.paid(l, due, hint)
			if len(due.items) >= several && l.owes() < mostItems/2 && !d.closed.Load() {
				d.pause(d.ctx, gather)
			}
			continue
		}
		d.retries.Add(1)
		if !d.pause(d.ctx, wait) {
			d.giveUp(l)
			return
		}
		wait = min(2*wait, lastRetry)
	}
}

// owes is how many settlements wait.
func (l *line) owes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.owed)
}

// due is one call's worth of settlements.
type due struct {
	op     Op
	items  []Item
	done   []Done
	places []int // in line.owed, rising

	one struct { // room for a single settlement
		items  [1]Item
		done   [1]Done
		places [1]int
	}
}

// due gathers settlements of the same op as the first, past others, but not past one of the same serial. It returns
// nil when nothing is owed; the caller's goroutine is then expected to end.
func (d *Desk) due(l *line) *due {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.owed) == 0 {
		l.settles = false
		l.owed = nil
		return nil
	}
	b := &due{op: l.owed[0].op}
	b.items, b.places, b.done = b.one.items[:0], b.one.places[:0], b.one.done[:]
	passed := make(map[string]bool)
	for i, s := range l.owed[:min(len(l.owed), 4*mostItems)] {
		if s.op != b.op || passed[s.item.Serial] {
			passed[s.item.Serial] = true
			continue
		}
		b.items = append(b.items, s.item)
		b.places = append(b.places, i)
		if len(b.items) == mostItems {
			break
		}
	}
	if len(b.items) > len(b.done) {
		b.done = make([]Done, len(b.items))
	}
	return b
}

// finish makes the call.
func (d *Desk) finish(l *line, b *due) (Hint, error) {
	turn, err := d.turnToSettle()
	if err != nil {
		return Hint{}, err
	}
	defer func() { <-turn }()
	now := time.Now()
	d.calls.note(callFinish, len(b.items))
	return d.store.Finish(d.term(), l.sku, now.UnixMilli(), now.Add(d.o.Keep).UnixMilli(), b.op, b.items, b.done)
}

// turnToSettle waits for the right to a call, which who has it gives back. Calls are few while there is room: what waits for them
// gathers, line by line, and a call is what costs Redis most.
func (d *Desk) turnToSettle() (turn chan struct{}, err error) {
	var more chan struct{}
	if len(d.room) > cap(d.room)/8 {
		more = d.more
	}
	select {
	case d.aside <- struct{}{}:
		return d.aside, nil
	case more <- struct{}{}:
		return more, nil
	case <-d.ctx.Done():
		return nil, d.ctx.Err()
	}
}

// paid takes b out of what is owed, and keeps in mind what it came to.
func (d *Desk) paid(l *line, b *due, hint Hint) {
	for i, it := range b.items {
		d.conclude(l, b.op, it, b.done[i])
	}
	l.mu.Lock()
	for i, place := range b.places {
		l.owed[place].paid = true
		d.undoubt(l, b.items[i].Serial)
		<-d.room
	}
	kept := l.owed[:0]
	for _, s := range l.owed {
		if !s.paid {
			kept = append(kept, s)
		}
	}
	clear(l.owed[len(kept):])
	l.owed = kept
	l.mu.Unlock()
	if b.done[0] != NoLedger {
		d.note(l, hint)
	}
}

// conclude counts what one settlement came to, and says loudly what somebody must look at.
func (d *Desk) conclude(l *line, op Op, it Item, done Done) {
	switch done {
	case Changed, Already:
		d.settled(d.o.Now(), l, it.Serial, op)
		if done == Changed {
			l.events.finish(op)
		}
		return
	case OverTotal:
		l.events.finish(op)
		d.settled(d.o.Now(), l, it.Serial, op)
	}
	l.events.trouble.Add(1)
	d.o.Log.Error("reservation does not agree with the shop", "sku", l.sku, "serial", it.Serial, "op", string(op), "found", finding(done))
}

// finding says what was found, for the log.
func finding(done Done) string {
	switch done {
	case WasReleased:
		return "released before: the shop must cancel the order"
	case WasSold:
		return "sold: use refund"
	case NotFound:
		return "no such reservation"
	case OverTotal:
		return "more is sold than there is"
	case NoLedger:
		return "no ledger for this SKU"
	}
	return "unknown"
}

// giveUp writes what is owed to the log.
func (d *Desk) giveUp(l *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.owed {
		<-d.room
		d.spill(l.sku, s, "the desk is closed")
	}
	l.owed, l.settles = nil, false
}

// spill writes a settlement to the log, so that it can be done by hand.
func (d *Desk) spill(sku string, s settlement, why string) {
	d.spilled.Add(1)
	d.o.Log.Error("settlement was not kept", "sku", sku, "serial", s.item.Serial, "op", string(s.op), "why", why)
}
