package ledger

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// How much a turn does. A look costs Redis about 7 µs, a page of 256 entries up to 200 µs: in all less than 10 ms a
// second for each instance.
const (
	auditEvery = time.Second
	looksATurn = 200 // SKUs whose numbers are judged; with more, each has its turn less often
	wholeATurn = 20  // of them what they count as well, where that is one page
	pagesATurn = 25  // of the one larger ledger that is being walked through
)

// auditor judges the ledgers of a desk's SKUs, again and again: the numbers of each at every turn, and what they
// count as far as its share of Redis goes. One a ledger would do; every desk has one, so that it does not matter
// which instance lives. What it finds is told by a metric and, when it changes, by the log. It repairs nothing.
type auditor struct {
	desk   *Desk
	store  inspected
	broken [numInvariants]atomic.Int64 // SKUs
	whole  atomic.Uint64               // audits to the end
	failed atomic.Uint64               // pages that could not be read

	// of the goroutine that runs
	known map[*line]findings // what was broken last
	start int                // the place among the lines where a turn begins
	walk  *line              // whose tally is under way
	tally *tally
}

func newAuditor(d *Desk, s inspected) *auditor {
	return &auditor{desk: d, store: s, known: make(map[*line]findings)}
}

// run takes its turns until ctx ends.
func (a *auditor) run(ctx context.Context) {
	tick := time.NewTicker(auditEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.turn(ctx)
		}
	}
}

// turn ends early when the store does not answer again and again.
func (a *auditor) turn(ctx context.Context) {
	lines, patience := a.lines(), 3
	whole := min(len(lines), wholeATurn)
	for _, l := range slices.Concat(lines[:whole], a.vanished()) {
		if !a.look(ctx, l, pageSize) {
			if patience--; patience == 0 {
				return
			}
		}
	}
	for some := range slices.Chunk(lines[whole:], together) {
		if !a.glance(ctx, some) {
			if patience--; patience == 0 {
				return
			}
		}
	}
	for i := 0; i < pagesATurn && a.walk != nil; i++ {
		if !a.step(ctx) {
			return
		}
	}
}

// lines are those of SKUs with a ledger whose turn it is. The next turn begins behind those that are looked at as a whole
// now, or at the last one.
func (a *auditor) lines() (turn []*line) {
	next := a.start
	for place, l := range a.desk.lines.round(a.start) {
		if !l.real() {
			continue
		}
		if turn = append(turn, l); len(turn) <= wholeATurn+1 {
			next = place
		}
		if len(turn) == looksATurn {
			break
		}
	}
	a.start = next
	return turn
}

// vanished are some lines of which something is broken, and no longer a ledger is known.
func (a *auditor) vanished() (some []*line) {
	for l := range a.known {
		if !l.real() || a.desk.lines.find([]byte(l.sku)) != l {
			if some = append(some, l); len(some) == wholeATurn {
				break
			}
		}
	}
	return some
}

// glance judges some lines by their numbers alone. It reports whether the store answered for any of them.
func (a *auditor) glance(ctx context.Context, some []*line) (answered bool) {
	skus := make([]string, len(some))
	for i, l := range some {
		skus[i] = l.sku
	}
	ctx, cancel := context.WithTimeout(ctx, a.desk.o.Timeout)
	defer cancel()
	a.desk.calls.note(callAudit, len(some))
	for i, found := range a.store.inspectAll(ctx, skus) {
		t := &tally{}
		if _, ok := a.take(some[i], t, &found.page, found.err); ok {
			a.judge(some[i], t)
			answered = true
		}
	}
	return answered
}

// look judges l by its numbers, and by all that they count if that is at most so many entries. It reports whether the
// store answered.
func (a *auditor) look(ctx context.Context, l *line, most int) bool {
	t := &tally{}
	more, ok := a.page(ctx, l, t, most)
	if ok {
		a.judge(l, t)
	}
	if ok && more && most > 0 && a.walk == nil {
		a.walk, a.tally = l, t
	}
	return ok
}

// step turns the next page of the ledger that is walked through. When it has changed, it has another chance later.
func (a *auditor) step(ctx context.Context) bool {
	more, ok := a.page(ctx, a.walk, a.tally, pageSize)
	if !ok || more {
		return ok
	}
	if a.tally.done {
		a.judge(a.walk, a.tally)
	}
	a.walk, a.tally = nil, nil
	return true
}

func (a *auditor) page(ctx context.Context, l *line, t *tally, most int) (more, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, a.desk.o.Timeout)
	defer cancel()
	a.desk.calls.note(callAudit, 1)
	p, err := a.store.inspect(ctx, l.sku, t.part, t.cursor(), most)
	return a.take(l, t, &p, err)
}

// take takes a page in. It reports whether there is another, and whether the store answered.
func (a *auditor) take(l *line, t *tally, p *page, err error) (more, ok bool) {
	if err != nil {
		a.failed.Add(1)
		return false, false
	}
	if c, ok := p.counted(); ok {
		l.counted.Store(c)
	} else if p.none() {
		l.counted.Store(nil)
	}
	return t.turn(p), true
}

// judge says what has changed since the last time.
func (a *auditor) judge(l *line, t *tally) {
	if t.done {
		a.whole.Add(1)
	}
	covered, before := t.covered(), a.known[l]
	now := before&^covered | t.found&covered
	if now == before {
		return
	}
	for i := range numInvariants {
		switch {
		case now.has(i) && !before.has(i):
			a.broken[i].Add(1)
		case !now.has(i) && before.has(i):
			a.broken[i].Add(-1)
		}
	}
	found := t.audit()
	if now != 0 {
		a.known[l] = now
		a.desk.o.Log.Error("ledger breaks an invariant", found.attrs(l.sku)...)
		return
	}
	delete(a.known, l)
	a.desk.o.Log.Info("ledger is whole again", found.attrs(l.sku)...)
}

// collect writes a gauge for each invariant; a nil auditor has found nothing.
func (a *auditor) collect(ch chan<- prometheus.Metric) {
	broken := prometheus.NewDesc("sluice_ledger_invariant_broken",
		"1 while an invariant of any ledger is broken, as this instance sees it: the log names the SKU.", []string{"kind"}, nil)
	for i := range numInvariants {
		v := 0.0
		if a != nil && a.broken[i].Load() > 0 {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(broken, prometheus.GaugeValue, v, i.String())
	}
	var whole, failed uint64
	if a != nil {
		whole, failed = a.whole.Load(), a.failed.Load()
	}
	audits := prometheus.NewDesc("sluice_ledger_audits_total",
		"Audits of one ledger: whole ones, and those for which the store did not answer.", []string{"result"}, nil)
	ch <- prometheus.MustNewConstMetric(audits, prometheus.CounterValue, float64(whole), "whole")
	ch <- prometheus.MustNewConstMetric(audits, prometheus.CounterValue, float64(failed), "failed")
}
