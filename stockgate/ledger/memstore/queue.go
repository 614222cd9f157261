package memstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"sluice/stockgate/ledger/protocol"
)

// queue is the orders of one SKU that wait or were handed out. It has what the keys of queue.lua have.
type queue struct {
	orders    map[string]*queued
	answers   map[string]answer
	numbered  int64
	delivered int64
}

// queued is one order of a queue.
type queued struct {
	where    protocol.Where
	due      int64 // Unix ms: end of the attempt and the grace, or when it is asked about
	attempt  int64
	lease    int64
	open     bool
	deadline int64
	number   int64
	epoch    int64
	until    int64
	request  string
}

// later is what places of orders have that wait behind all others: the rest is when they may be handed out.
const later = 10_000_000_000_000

type answer struct {
	text  string
	until time.Time
}

// enqueue has an order wait that was reserved just now.
func (b *memoryStock) enqueue(i protocol.Item) {
	until, data, err := protocol.SplitRequest(i.Request)
	if err != nil {
		panic("BUG: a request that was checked: " + err.Error())
	}
	b.queue.numbered++
	if b.queue.orders == nil {
		b.queue.orders = make(map[string]*queued)
	}
	b.queue.orders[i.Serial] = &queued{where: protocol.Queued, number: b.queue.numbered, epoch: b.Epoch, until: until,
		request: data}
}

// HandOut implements protocol.Queue.
func (m *Store) HandOut(ctx context.Context, sku string, c protocol.HandOutCall) (t protocol.HandedOut, err error) {
	defer protocol.Describe(&err, "take orders of", sku)
	if err := errors.Join(ctx.Err(), c.Check(sku)); err != nil {
		return t, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.stocks[sku]
	if b == nil {
		return t, protocol.ErrUnknownSKU
	}
	if b.State != protocol.Frozen {
		b.takeWaiting(&c, &t)
		b.takeUnknown(&c, &t)
	}
	b.queue.delivered += int64(len(t.Orders))
	oldest := t.Oldest
	t.StockVersion, t.Depth = b.StockVersion, b.depth()
	t.Stuck, t.Oldest = 0, oldest
	return t, nil
}

func (b *memoryStock) depth() (d protocol.Depth) {
	for _, q := range b.queue.orders {
		switch {
		case q.where == protocol.Queued:
			d.Waiting++
		case q.where == protocol.Delivering:
			d.Leased++
		case q.due == protocol.Never:
			d.Stuck++
			fallthrough
		default:
			d.Asking++
		}
	}
	d.Delivered = b.queue.delivered
	return d
}

// at are the serials of orders at a place, in order; those that are decided are forgotten.
func (b *memoryStock) at(where protocol.Where) (serials []string) {
	for serial, q := range b.queue.orders {
		switch {
		case b.records[serial].Status != protocol.StatusHeld:
			delete(b.queue.orders, serial)
		case q.where == where:
			serials = append(serials, serial)
		}
	}
	slices.SortFunc(serials, func(x, y string) int {
		p, q := b.queue.orders[x], b.queue.orders[y]
		if where == protocol.Queued {
			return cmp.Or(cmp.Compare(p.number, q.number), cmp.Compare(x, y)) // as Redis orders a sorted set
		}
		return cmp.Or(cmp.Compare(p.due, q.due), cmp.Compare(x, y))
	})
	return serials
}

func (b *memoryStock) leased(serial string, q *queued, request string) protocol.Leased {
	return protocol.Leased{Record: b.records[serial], Attempt: q.attempt, Lease: q.lease, Deadline: q.deadline,
		Until: q.until, Open: q.open, Request: request}
}

// Decide implements protocol.Queue.
func (m *Store) Decide(ctx context.Context, sku string, c protocol.DecideCall) (
	done []protocol.Done, h protocol.StockVersion, err error,
) {
	defer protocol.Describe(&err, "decide about orders of", sku)
	if err := errors.Join(ctx.Err(), c.Check(sku)); err != nil {
		return nil, h, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b, confirmed, released := m.stocks[sku], false, false
	if b == nil {
		return slices.Repeat([]protocol.Done{protocol.NoLedger}, len(c.Decisions)), h, nil
	}
	for i := range c.Decisions {
		d := &c.Decisions[i]
		did, settled := b.decide(&c, d)
		if settled || did == protocol.Already && d.Move == protocol.MoveConfirm {
			b.keepAnswer(d, c.AnswerFor)
		}
		done = append(done, did)
		confirmed = confirmed || settled && d.Move == protocol.MoveConfirm
		released = released || settled && d.Move != protocol.MoveConfirm
	}
	b.commit(confirmed)
	return done, b.commit(released), nil
}

// keepAnswer keeps the answer to an order; the first one stands.
func (b *memoryStock) keepAnswer(d *protocol.Decision, answerFor int64) {
	if b.answer(d.Serial) != "" || d.Answer == "" {
		return
	}
	if b.queue.answers == nil {
		b.queue.answers = make(map[string]answer)
	}
	b.queue.answers[d.Serial] = answer{d.Answer, time.Now().Add(time.Duration(answerFor) * time.Millisecond)}
}

// decide is Decide; settled reports whether it has decided the reservation.
func (b *memoryStock) decide(c *protocol.DecideCall, d *protocol.Decision) (done protocol.Done, settled bool) {
	r, ok := b.records[d.Serial]
	q := b.queue.orders[d.Serial]
	settle := func(op protocol.Op) (protocol.Done, bool) {
		delete(b.queue.orders, d.Serial)
		return b.finish(op, protocol.Item{Serial: d.Serial}, c.Keep), true
	}
	ends := d.Move == protocol.MoveRelease || d.Move == protocol.MoveCancel
	switch {
	case !ok:
		return protocol.NotFound, false
	case r.Status == protocol.StatusSold && d.Move == protocol.MoveConfirm:
		return protocol.Already, false
	case r.Status == protocol.StatusSold:
		return protocol.WasSold, false
	case r.Status != protocol.StatusHeld && ends:
		return protocol.Already, false
	case r.Status != protocol.StatusHeld:
		return protocol.WasReleased, false
	case d.Move == protocol.MoveConfirm:
		return settle(protocol.Confirm)
	case q == nil:
		return protocol.NotQueued, false
	case d.Move == protocol.MoveCancel && q.where == protocol.Queued && q.epoch == b.Epoch && !q.open &&
		b.State != protocol.Frozen:
		return settle(protocol.Release)
	case d.Move == protocol.MoveRequeue:
		return b.requeue(q, c.Now, d.Time), false
	case d.Move == protocol.MoveCancel, q.where == protocol.Queued, q.lease != d.Lease:
		return protocol.TooLate, false
	case d.Move == protocol.MoveRelease:
		return settle(protocol.Release)
	}
	b.wait(q, d)
	return protocol.Changed, false
}

// wait has an order wait again where it was, or asked about from a time on.
func (b *memoryStock) wait(q *queued, d *protocol.Decision) {
	if d.Move == protocol.MoveLater || q.epoch != b.Epoch {
		q.where, q.due = protocol.Asking, d.Time
	} else {
		q.where = protocol.Queued
	}
	if d.Move == protocol.MoveLater {
		return
	}
	switch d.Move {
	case protocol.MoveNotNow:
		q.number = later + min(d.From, q.until)
		fallthrough
	case protocol.MoveUnsent:
		if q.epoch == b.Epoch {
			q.attempt = max(q.attempt-1, 0)
		}
	case protocol.MoveNowhere:
		q.open = false
	case protocol.MoveRepeat:
		q.open = true
	}
	q.epoch = b.Epoch
}

// requeue is a person's word that no attempt made the order.
func (b *memoryStock) requeue(q *queued, now, until int64) protocol.Done {
	if q.where != protocol.Asking || q.due != protocol.Never || until <= now {
		return protocol.TooLate
	}
	q.attempt, q.deadline, q.until, q.open = 0, 0, until, false
	q.where, q.epoch = protocol.Queued, b.Epoch
	return protocol.Changed
}

// answer is what is kept of a serial. What is too old is forgotten.
func (b *memoryStock) answer(serial string) string {
	for s, a := range b.queue.answers {
		if time.Now().After(a.until) {
			delete(b.queue.answers, s)
		}
	}
	return b.queue.answers[serial].text
}

// Positions implements protocol.Queue.
func (m *Store) Positions(ctx context.Context, sku string, serials []string) (places []protocol.Position, err error) {
	defer protocol.Describe(&err, "find orders of", sku)
	if err := errors.Join(ctx.Err(), protocol.CheckSKU(sku)); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.stocks[sku]
	for _, serial := range serials {
		p := protocol.Position{Record: protocol.Record{Serial: serial}}
		if b != nil {
			p = b.place(serial)
		}
		places = append(places, p)
	}
	return places, nil
}

func (b *memoryStock) place(serial string) protocol.Position {
	p := protocol.Position{Record: b.records[serial]}
	p.Serial = serial
	q := b.queue.orders[serial]
	if p.Status != protocol.StatusHeld && p.Status != protocol.StatusNone {
		p.Answer = b.answer(serial)
	}
	if q == nil || p.Status != protocol.StatusHeld {
		return p
	}
	if p.Where = q.where; q.where == protocol.Queued {
		p.Ahead = int64(slices.Index(b.at(protocol.Queued), serial))
	}
	if q.where == protocol.Asking && q.due == protocol.Never {
		p.Where = protocol.ForAPerson
	}
	return p
}

// Depths implements protocol.Queue.
func (m *Store) Depths(ctx context.Context, skus []string) ([]protocol.Depth, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	depths := make([]protocol.Depth, len(skus))
	for i, sku := range skus {
		if b := m.stocks[sku]; b != nil {
			depths[i] = b.depth()
		}
	}
	return depths, ctx.Err()
}

// Stuck implements protocol.Queue.
func (m *Store) Stuck(ctx context.Context, sku string, limit int) (serials []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := m.stocks[sku]; b != nil {
		for _, serial := range b.at(protocol.Asking) {
			if b.queue.orders[serial].due == protocol.Never && len(serials) < limit {
				serials = append(serials, serial)
			}
		}
	}
	return serials, ctx.Err()
}

// Names implements protocol.Queue.
func (m *Store) Names(ctx context.Context, after string) (names []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for sku := range m.stocks {
		if sku > after {
			names = append(names, sku)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxNames)], ctx.Err()
}

// maxNames are named by one call of Names.
const maxNames = 1000
