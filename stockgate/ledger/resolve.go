package ledger

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Verdict is what the shop knows of a serial.
type Verdict int8

// The verdicts. The zero value is the one that changes nothing.
const (
	NobodyKnows Verdict = iota // no answer, or one that says nothing
	OrderExists
	NoOrder
)

// Oracle knows whether the shop has an order. An error means NobodyKnows.
type Oracle interface {
	Ask(ctx context.Context, sku, serial string) (Verdict, error)
}

const (
	resolveEvery = time.Second
	sweepsATurn  = 100              // SKUs, at least; of more, so many that all have had their sweep after sweepTurns
	sweepTurns   = 20               // a third of FRESH in mark.lua: whoever is silent for longer is not waited for after a fail-over
	sweepAtOnce  = 256              // holds of one SKU
	leaseFor     = 60 * time.Second // longer than a turn may take
	asksATurn    = 256
	asksAtOnce   = 8
	askTimeout   = 2 * time.Second
)

// resolution is how an attempt to clear a doubt ended.
type resolution int

const (
	foundOrder resolution = iota // the shop has the order: confirmed
	foundNone                    // the shop has none and cannot get it any more: released
	foundStray                   // it was never forwarded: released
	unfenced                     // the shop has none, but it could still arrive: held
	undecided                    // nobody knows: held
	askFailed                    // the store or the shop could not be asked: held
	gone                         // it has been decided elsewhere
	numResolutions
)

func (r resolution) String() string {
	return [...]string{"confirmed", "released", "stray", "unfenced", "undecided", "failed", "gone"}[r]
}

// run sweeps and resolves until ctx ends.
func (d *Desk) run(ctx context.Context) {
	tick := time.NewTicker(resolveEvery)
	defer tick.Stop()
	for r := (rota{}); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.sweepSome(ctx, &r)
			d.reconcileSome(ctx)
			d.resolveSome(ctx)
		}
	}
}

// sweepSome sweeps the lines whose turn it is, and removes those that are of no use. A sweep is also what keeps this
// instance's mark fresh in a ledger that nobody asks it for.
func (d *Desk) sweepSome(ctx context.Context, r *rota) {
	r.join(d.lines.newcomers(), d.useless)
	for some := range slices.Chunk(r.next(), together) {
		if ctx.Err() != nil {
			return
		}
		skus := make([]string, len(some))
		for i, l := range some {
			skus[i] = l.sku
		}
		d.sweep(ctx, some, skus)
		d.heed(ctx, some, skus)
		for _, l := range some {
			d.remirror(ctx, l)
		}
	}
}

// useless removes a line of a SKU without a ledger which nobody has asked for lately, and reports whether it did.
func (d *Desk) useless(l *line) bool {
	switch v := l.view.Load(); {
	case v == nil && l.expected.Load():
	case v == nil, d.o.Now()-v.at > 10*d.memory:
		return d.drop(l)
	}
	return false
}

// drop removes a line of a SKU without a ledger, unless it is in use.
func (d *Desk) drop(l *line) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls > 0 || l.settles || l.mirror.busy || l.reading.Load() || len(l.asked)+len(l.doubts)+len(l.owed) > 0 {
		return false
	}
	l.gone = true
	d.dismiss(l)
	if l.behind {
		d.behind.Add(-1)
	}
	d.lines.remove(l)
	return true
}

// sweep leases overdue holds of some SKUs: only one instance asks for each. What fails is swept again in the SKU's next turn.
func (d *Desk) sweep(ctx context.Context, some []*line, skus []string) {
	now := time.Now().UnixMilli()
	lease := now + leaseFor.Milliseconds()
	bounded, cancel := context.WithTimeout(ctx, d.o.Timeout)
	d.calls.note(callSweep, len(some))
	swept := d.store.SweepAll(bounded, skus, now, lease)
	cancel()
	for i, l := range some {
		d.wonderAll(l, swept[i].Holds, now, lease)
		if swept[i].More {
			d.sweepWhole(ctx, l)
		}
	}
}

// sweepWhole sweeps a SKU of which more is due than it takes to share a call.
func (d *Desk) sweepWhole(ctx context.Context, l *line) {
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	now := time.Now().UnixMilli()
	lease := now + leaseFor.Milliseconds()
	d.calls.note(callSweep, 1)
	overdue, _ := d.store.Sweep(ctx, l.sku, now, lease, sweepAtOnce) // after an error there are none
	d.wonderAll(l, overdue, now, lease)
}

// wonderAll makes overdue holds doubts.
func (d *Desk) wonderAll(l *line, overdue []Record, now, lease int64) {
	if len(overdue) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range overdue {
		d.wonder(l, r.Serial, now, lease)
	}
}

// question is a doubt whose time has come, as it was then.
type question struct {
	line   *line
	serial string
	doubt
}

// resolveSome tries to clear the doubts whose time has come.
func (d *Desk) resolveSome(ctx context.Context) {
	open := make(chan question, asksATurn)
	now := time.Now().UnixMilli()
	for _, l := range d.doubtful.each() {
		d.collect(l, now, open)
	}
	close(open)
	var workers sync.WaitGroup
	for range min(asksAtOnce, len(open)) {
		workers.Go(func() {
			for q := range open {
				if ctx.Err() == nil {
					r := d.resolve(ctx, &q)
					d.verdicts[r].Add(1)
					d.close(q, r)
				}
			}
		})
	}
	workers.Wait()
}

// collect adds the doubts of l that are due, as long as there is room for them.
func (d *Desk) collect(l *line, now int64, open chan<- question) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		if len(l.doubts) == 0 {
			d.doubtful.remove(l)
		}
	}()
	for serial, c := range l.doubts {
		switch {
		case len(open) == cap(open):
			return
		case len(c.mine) == 0 && now > c.until: // the next sweep hands it to somebody
			d.undoubt(l, serial)
		case c.due > now:
		default:
			open <- question{line: l, serial: serial, doubt: *c}
		}
	}
}

// resolve tries to clear one doubt.
func (d *Desk) resolve(ctx context.Context, q *question) resolution {
	r, ok, err := d.find(ctx, q.line, q.serial)
	switch {
	case err != nil:
		return askFailed
	case !ok && len(q.mine) > 0 && q.looks < strayLooks:
		q.looks++ // tries alone pass while nobody can look, and what was sent before an outage may arrive after it
		return undecided
	case !ok, r.Status != 'H':
		return gone
	case slices.Contains(q.mine, r.Deadline):
		return d.owes(q, Release, foundStray)
	case !q.asks:
		return gone // the hold is another's
	case d.oracle == nil:
		return undecided
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	fenced := d.fenced(r.Deadline) // before it is asked: by the time that it answers an order may have come
	verdict, err := d.oracle.Ask(ctx, q.line.sku, q.serial)
	switch {
	case err != nil:
		return askFailed
	case verdict == OrderExists:
		return d.owes(q, Confirm, foundOrder)
	case verdict == NoOrder && fenced:
		return d.owes(q, Release, foundNone)
	case verdict == NoOrder:
		return unfenced
	}
	return undecided
}

// fenced reports whether an order that the shop does not know now, of a hold until deadline, can no longer come
// into being.
func (d *Desk) fenced(deadline int64) bool {
	switch d.o.Fence {
	case fenceCancel:
		return true
	case fenceDeadline, fenceHold:
		return time.Now().UnixMilli() >= deadline+d.o.Grace.Milliseconds()
	}
	return false
}

// owes queues the settlement that clears a doubt.
func (d *Desk) owes(q *question, op Op, r resolution) resolution {
	select {
	case d.room <- struct{}{}:
	default:
		return askFailed // there is no room now
	}
	if !d.owe(q.line, settlement{item: Item{Serial: q.serial}, op: op}) {
		<-d.room
		return askFailed
	}
	return r
}

// close ends a doubt, or puts it off. One that is owed to the store ends when the store has it.
func (d *Desk) close(q question, r resolution) {
	q.line.mu.Lock()
	defer q.line.mu.Unlock()
	c := q.line.doubts[q.serial]
	switch {
	case c == nil, c.newest() != q.newest(), c.asks != q.asks: // settled, unsure once more, or forwarded, meanwhile
	case r == gone:
		d.undoubt(q.line, q.serial)
	case r == foundOrder, r == foundNone, r == foundStray:
		c.due = time.Now().UnixMilli() + longestPause
	default:
		c.looks = q.looks
		c.later(time.Now().UnixMilli())
	}
}
