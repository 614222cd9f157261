package ledger

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/periodic"
	"sluice/stockgate/ledger/protocol"
)

// How much one run of the auditor does. The numbers of a ledger cost Redis about 7 µs, a page of 256 entries up to
// 200 µs: in all less than 10 ms a second for each instance.
const (
	auditInterval = time.Second
	numbersPerRun = 200 // SKUs whose numbers are judged; with more, each is judged less often
	wholePerRun   = 20  // of them what they count as well, where that is one page
	pagesPerRun   = 25  // of the one larger ledger that is being walked through
)

// auditorOptions say how an auditor works.
type auditorOptions struct {
	SKUs    func() []string // that have a ledger, as far as is known
	Timeout time.Duration   // of one call
	Observe func(skus int)  // counts a call; may be nil
	Named   int             // ledgers whose numbers metrics name
	Log     *slog.Logger
}

// auditor judges the ledgers of many SKUs, again and again: the numbers of each, and what they count as far as its
// share of Redis goes. One a ledger would do; every instance has one, so that it does not matter which instance
// lives. What it finds is told by a metric and, when it changes, by the log. It repairs nothing.
type auditor struct {
	o      auditorOptions
	store  Store
	broken [numInvariants]atomic.Int64 // SKUs
	audits *prometheus.CounterVec      // by result: whole ones, and pages that could not be read

	mu      sync.Mutex
	numbers map[string]numbers // by SKU, as last read

	// Of the goroutine that runs:
	known map[string]violations // what was broken last
	queue []string              // SKUs that are still to be judged in this round
	walk  string                // the SKU whose tally is under way; "" = none
	tally *auditRun
}

// newAuditor returns an auditor of the ledgers in s, which may be nil if it never runs.
func newAuditor(o auditorOptions, s Store) *auditor {
	if o.Observe == nil {
		o.Observe = func(int) {}
	}
	a := &auditor{o: o, store: s, known: make(map[string]violations), numbers: make(map[string]numbers),
		audits: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_ledger_audits_total",
			Help: "Audits of one ledger: whole ones, and those for which the store did not answer."}, []string{"result"})}
	a.audits.WithLabelValues("whole")
	a.audits.WithLabelValues("failed")
	return a
}

// Run audits until ctx ends.
func (a *auditor) Run(ctx context.Context) { periodic.After(ctx, auditInterval, a.RunOnce) }

// RunOnce ends early when the store does not answer again and again.
func (a *auditor) RunOnce(ctx context.Context) {
	skus, faults := a.nextSKUs(), 3
	whole := min(len(skus), wholePerRun)
	for _, sku := range slices.Concat(skus[:whole], a.vanished(skus)) {
		if !a.judgeWhole(ctx, sku) {
			if faults--; faults == 0 {
				return
			}
		}
	}
	for some := range slices.Chunk(skus[whole:], protocol.MaxTogether) {
		if !a.judgeNumbers(ctx, some) {
			if faults--; faults == 0 {
				return
			}
		}
	}
	for i := 0; i < pagesPerRun && a.walk != ""; i++ {
		if !a.step(ctx) {
			return
		}
	}
}

// nextSKUs are the SKUs of this run. The next run begins behind those that are judged as a whole now.
func (a *auditor) nextSKUs() []string {
	if len(a.queue) < numbersPerRun {
		all := a.o.SKUs()
		a.forgetOthers(all)
		if len(all) <= numbersPerRun {
			a.queue = rotate(all, a.queue)
		} else {
			a.queue = append(a.queue, all...)
		}
	}
	n := min(len(a.queue), numbersPerRun)
	skus := a.queue[:n]
	a.queue = slices.Clone(a.queue[min(n, wholePerRun):])
	return skus
}

// forgetOthers drops the numbers of SKUs that have no ledger any more.
func (a *auditor) forgetOthers(all []string) {
	have := make(map[string]bool, len(all))
	for _, sku := range all {
		have[sku] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.numbers, func(sku string, _ numbers) bool { return !have[sku] })
}

// rotate returns all, beginning with the first of left that is among them.
func rotate(all, left []string) []string {
	slices.Sort(all)
	for _, sku := range left {
		if i, ok := slices.BinarySearch(all, sku); ok {
			return slices.Concat(all[i:], all[:i])
		}
	}
	return all
}

// vanished are some SKUs of which something is broken, and that are not among skus.
func (a *auditor) vanished(skus []string) (some []string) {
	for sku := range a.known {
		if !slices.Contains(skus, sku) {
			if some = append(some, sku); len(some) == wholePerRun {
				break
			}
		}
	}
	return some
}

// judgeNumbers judges some SKUs by their numbers alone. It reports whether the store answered for any of them.
func (a *auditor) judgeNumbers(ctx context.Context, skus []string) (answered bool) {
	ctx, cancel := context.WithTimeout(ctx, a.o.Timeout)
	defer cancel()
	a.o.Observe(len(skus))
	for i, found := range a.store.InspectAll(ctx, skus) {
		t := &auditRun{}
		if _, ok := a.add(skus[i], t, &found.Page, found.Err); ok {
			a.judge(skus[i], t)
			answered = true
		}
	}
	return answered
}

// judgeWhole judges a SKU by its numbers, and by all that they count if that is one page. It reports whether the store
// answered.
func (a *auditor) judgeWhole(ctx context.Context, sku string) bool {
	t := &auditRun{}
	more, ok := a.page(ctx, sku, t)
	if ok {
		a.judge(sku, t)
	}
	if ok && more && a.walk == "" {
		a.walk, a.tally = sku, t
	}
	return ok
}

// step reads the next page of the ledger that is walked through. When it has changed, it has another chance later.
func (a *auditor) step(ctx context.Context) bool {
	more, ok := a.page(ctx, a.walk, a.tally)
	if !ok || more {
		return ok
	}
	if a.tally.done {
		a.judge(a.walk, a.tally)
	}
	a.walk, a.tally = "", nil
	return true
}

func (a *auditor) page(ctx context.Context, sku string, t *auditRun) (more, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, a.o.Timeout)
	defer cancel()
	a.o.Observe(1)
	p, err := a.store.Inspect(ctx, sku, t.part, t.cursor(), protocol.PageSize)
	return a.add(sku, t, &p, err)
}

// add adds a page to t. It reports whether there is another, and whether the store answered.
func (a *auditor) add(sku string, t *auditRun, p *protocol.Page, err error) (more, ok bool) {
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
