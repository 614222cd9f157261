package ledger

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// pagesPerSweep is how much an auditor counts at a sweep. A page costs Redis up to 200 µs, and the numbers of a ledger
// about 7: in all less than 10 ms a second for each instance.
const pagesPerSweep = 45

// countTime is for how long it counts at a sweep: a Redis that answers slowly must not hold up the next sweep, which
// keeps this instance's mark fresh.
const countTime = 500 * time.Millisecond

// auditor compares ledgers with their records, which no script does: another client may have written to the keys. At
// each sweep it judges the numbers of the SKUs that were swept, and counts a part of all ledgers, one after another. One
// instance would do; each does it, so that it does not matter which instance lives. What it finds is told by a metric
// and, when it changes, by the log. It repairs nothing.
type auditor struct {
	*core
	skus   func() []string             // that have a ledger, as far as is known
	broken [numInvariants]atomic.Int64 // SKUs
	audits *prometheus.CounterVec      // by result: whole ones, and pages that could not be read

	mu      sync.Mutex
	numbers map[string]numbers // by SKU, as last read

	// Of the goroutine that sweeps:
	known map[string]violations // what was broken last
	queue []string              // SKUs that are still to be counted in this round; the first one is under way
	tally *auditRun             // of it
}

// newAuditor returns an auditor of the ledgers of skus.
func newAuditor(r *core, skus func() []string) *auditor {
	a := &auditor{core: r, skus: skus, known: make(map[string]violations), numbers: make(map[string]numbers),
		audits: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_ledger_audits_total",
			Help: "Audits of one ledger: whole ones, and those for which the store did not answer."}, []string{"result"})}
	a.audits.WithLabelValues("whole")
	a.audits.WithLabelValues("failed")
	return a
}

// check goes on counting, and judges the numbers of the SKUs that were swept. It ends early when the store does not
// answer again and again.
func (a *auditor) check(ctx context.Context, swept []string) {
	faults, start := 3, time.Now()
	for pages, begun := pagesPerSweep, false; pages > 0 && faults > 0 && time.Since(start) < countTime; pages-- {
		if len(a.queue) == 0 {
			if begun {
				break // each was counted at this sweep
			}
			begun = true
			if a.beginRound(); len(a.queue) == 0 {
				break
			}
		}
		if !a.step(ctx) {
			faults--
		}
	}
	for some := range slices.Chunk(swept, MaxTogether) {
		if faults > 0 && !a.judgeNumbers(ctx, some) {
			faults--
		}
	}
}

// beginRound has all ledgers counted, and those of which something is broken, although they may be gone. It drops the
// numbers of SKUs that have no ledger any more.
func (a *auditor) beginRound() {
	a.queue = a.skus()
	have := make(map[string]bool, len(a.queue))
	for _, sku := range a.queue {
		have[sku] = true
	}
	for sku := range a.known {
		if !have[sku] {
			a.queue = append(a.queue, sku)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.numbers, func(sku string, _ numbers) bool { return !have[sku] })
}

// judgeNumbers judges some SKUs by their numbers alone. It reports whether the store answered for any of them.
func (a *auditor) judgeNumbers(ctx context.Context, skus []string) (answered bool) {
	ctx, cancel := context.WithTimeout(ctx, a.o.Timeout)
	defer cancel()
	a.countCall(callAudit, len(skus))
	for i, found := range a.store.InspectAll(ctx, skus) {
		t := &auditRun{}
		if _, ok := a.add(skus[i], t, &found.Page, found.Err); ok {
			a.judge(skus[i], t)
			answered = true
		}
	}
	return answered
}

// step reads the next page of a ledger. When that has changed since its first page, it has another chance in the next
// round. It reports whether the store answered.
func (a *auditor) step(ctx context.Context) bool {
	if a.tally == nil {
		a.tally = &auditRun{}
	}
	more, ok := a.page(ctx, a.queue[0], a.tally)
	if ok && more {
		return true
	}
	if ok && a.tally.done {
		a.judge(a.queue[0], a.tally)
	}
	a.queue, a.tally = a.queue[1:], nil
	return ok
}

func (a *auditor) page(ctx context.Context, sku string, t *auditRun) (more, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, a.o.Timeout)
	defer cancel()
	a.countCall(callAudit, 1)
	p, err := a.store.Inspect(ctx, sku, t.part, t.cursor(), pageSize)
	return a.add(sku, t, &p, err)
}

// add adds a page to t. It reports whether there is another, and whether the store answered.
func (a *auditor) add(sku string, t *auditRun, p *Page, err error) (more, ok bool) {
	if err != nil {
		a.audits.WithLabelValues("failed").Inc()
		return false, false
	}
	n, readable := numbersOf(&p.Numbers)
	a.mu.Lock()
	switch {
	case readable:
		a.numbers[sku] = n
	case p.None():
		delete(a.numbers, sku)
	}
	a.mu.Unlock()
	return t.add(p), true
}

// judge says what has changed since the last time.
func (a *auditor) judge(sku string, t *auditRun) {
	if t.done {
		a.audits.WithLabelValues("whole").Inc()
	}
	covered, before := t.covered(), a.known[sku]
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
	if now != 0 {
		a.known[sku] = now
		a.o.Log.Error("ledger breaks an invariant", t.attrs(sku)...)
		return
	}
	delete(a.known, sku)
	a.o.Log.Info("ledger is whole again", t.attrs(sku)...)
}

// Collect writes a gauge for each invariant, and the numbers of the ledgers.
func (a *auditor) Collect(ch chan<- prometheus.Metric) {
	broken := prometheus.NewDesc("sluice_ledger_invariant_broken",
		"1 while an invariant of any ledger is broken, as this instance sees it: the log names the SKU.", []string{"kind"},
		nil)
	for i := range numInvariants {
		v := 0.0
		if a.broken[i].Load() > 0 {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(broken, prometheus.GaugeValue, v, i.String())
	}
	a.collectNumbers(ch)
	a.audits.Collect(ch)
}
