package ledger

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A glance finds out whether a closed SKU is still closed, and takes no order along: it reads the hint. Glances at several SKUs
// share a call. One leaves at once when none has left within glanceEvery, and what comes meanwhile gathers for the rest of
// that; of a crowd over very many SKUs a call carries up to 64. When the SKU is open the order stands in the queue, as any other;
// when it is not, the answer is as fresh as if the order had asked itself.
//
// A call that is not answered is made again, as one with orders is (see ask), for those of which nothing was heard. What is
// heard of one SKU waits for no other. Those of which nobody could say anything hear Unsure; nothing was taken for them.
// While a call hangs others leave beside it, at most glancesAtOnce, and beyond these an order waits for at most MaxWait: it is
// one of its SKU, whose other orders are answered from memory.
const (
	glanceEvery   = 10 * time.Millisecond
	glancesAtOnce = 8
)

// glances are the orders for which somebody is to look, at most one of each SKU. It is safe for concurrent use; the mutex of a line
// is taken before its own.
type glances struct {
	room chan struct{} // one element for each call under way

	mu      sync.Mutex
	tickets []*ticket
	leaving bool // somebody lets them leave
}

// probe lets t look whether the latch of l is still right: with a glance when that will do, or else itself, since it may be a buyer's
// that comes again, as k or nobody can tell. mu is held.
func (d *Desk) probe(l *line, t *ticket, k *known) {
	l.prober.Store(t)
	v, o := l.view.Load(), &t.order
	if v.absent || len(o.Key)+len(o.User) == 0 || k == nil && l.roster.Load().vouches(v) {
		d.glance(t)
		return
	}
	l.looking = append(l.looking, t)
}

// glance has somebody look for t. The mutex of its line is held.
func (d *Desk) glance(t *ticket) {
	t.looked = true
	g := &d.glances
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tickets = append(g.tickets, t)
	if !g.leaving {
		g.leaving = true
		d.work.Go(d.lookAround)
	}
}

// next takes out as many as share a call. Without any, whoever let them leave is expected to end.
func (g *glances) next() []*ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.tickets), together)
	some := slices.Clone(g.tickets[:n])
	g.tickets = slices.Delete(g.tickets, 0, n)
	g.leaving = n > 0
	return some
}

// lookAround lets glances leave until nobody waits for one.
func (d *Desk) lookAround() {
	for {
		d.glances.room <- struct{}{} // who has it gives it back, however the store is
		some := d.glances.next()
		if len(some) == 0 {
			<-d.glances.room
			return
		}
		d.work.Go(func() {
			d.lookTogether(some)
			<-d.glances.room
		})
		if len(some) < together {
			d.pause(d.ctx, glanceEvery)
		}
	}
}

// lookTogether takes glances for some orders, and finds the place of each.
func (d *Desk) lookTogether(some []*ticket) {
	first := d.o.Now()
	some = slices.DeleteFunc(some, func(t *ticket) bool { return d.expired(first, t) })
	for try := 1; len(some) > 0; try++ {
		some = d.lookOnce(some)
		if len(some) == 0 || try == d.o.Tries || d.o.Now()-first >= int64(d.o.Resend) || !d.pause(d.ctx, resendAfter<<try) {
			break
		}
	}
	for _, t := range some {
		d.unseen(t)
	}
}

// expired answers t if it has waited for too long.
func (d *Desk) expired(now int64, t *ticket) bool {
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	late := d.late(now, t.line, t)
	d.dispatch(t.line)
	return late
}

// lookOnce makes one call. It returns those of which nothing was heard.
func (d *Desk) lookOnce(some []*ticket) (left []*ticket) {
	skus := make([]string, len(some))
	for i, t := range some {
		skus[i] = t.line.sku
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.o.Timeout)
	defer cancel()
	d.calls.note(callGlance, len(some))
	began := d.o.Now()
	d.store.LookAll(ctx, skus, func(i int, h Hint, ok bool, err error) {
		t := some[i]
		if t.cause = err; err == nil {
			d.seen(t, &view{Hint: h, absent: !ok, at: began})
		}
	})
	return slices.DeleteFunc(some, func(t *ticket) bool { return t.cause == nil })
}

// seen takes in what a glance found, and finds the place of the order that waited for it.
func (d *Desk) seen(t *ticket, v *view) {
	l := t.line
	l.mu.Lock()
	defer l.mu.Unlock()
	now := d.o.Now()
	d.trouble(l, nil)
	l.prober.CompareAndSwap(t, nil)
	d.learn(now, l, v)
	d.place(now, l, t)
	d.attended(l, t, true)
	d.dispatch(l)
}

// unseen answers an order for which nobody could look.
func (d *Desk) unseen(t *ticket) {
	l := t.line
	l.mu.Lock()
	defer l.mu.Unlock()
	d.trouble(l, t.cause)
	d.part(l, t, Outcome{Code: Unsure, Serial: t.serial})
	l.events.count(Unsure, 1+len(t.followers))
	d.dispatch(l)
}

// attend lets t, whose key nobody here knows, wait for what the prober finds out: it may have won elsewhere since the latch was right.
// mu is held.
func (d *Desk) attend(now int64, l *line, t *ticket) {
	if p := l.prober.Load(); p != nil && now-t.at <= int64(d.o.MaxWait) && len(p.attending) < d.o.MaxQueue {
		p.attending = append(p.attending, t)
		return
	}
	d.part(l, t, Outcome{Code: Overloaded})
	l.events.count(Overloaded, 1+len(t.followers))
}

// attended finds the place of those who waited for what t finds out; where it could not, the latch is all that there is. mu is
// held, and somebody dispatches afterwards.
func (d *Desk) attended(l *line, t *ticket, found bool) {
	waiting, now := t.attending, d.o.Now()
	t.attending = nil
	for _, w := range waiting {
		v := l.view.Load()
		if code, closed := v.closes(now, w.quantity); closed && !found {
			d.part(l, w, l.latched(now, v, code, &w.order, d.recall(now, l, &w.order)))
			continue
		}
		d.place(now, l, w)
	}
}
