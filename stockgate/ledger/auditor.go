package ledger

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// auditor judges the numbers of ledgers as they lie there: another client may have written to the keys. It does so for
// the SKUs that were swept. One instance would do; each does it, so that it does not matter which instance lives. A
// metric says what it finds, and the log when that changes. It repairs nothing.
type auditor struct {
	*core
	broken [numInvariants]atomic.Int64 // SKUs
	audits *prometheus.CounterVec      // by result: of ledgers that were judged, and that could not be read

	mu      sync.Mutex
	numbers map[string]numbers // by SKU, as last read

	known map[string]violations // what was broken last; of the goroutine that sweeps
}

func newAuditor(r *core) *auditor {
	a := &auditor{core: r, known: make(map[string]violations), numbers: make(map[string]numbers),
		audits: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_ledger_audits_total",
			Help: "Audits of one ledger: whole ones, and those for which the store did not answer."}, []string{"result"})}
	a.audits.WithLabelValues("whole")
	a.audits.WithLabelValues("failed")
	return a
}

// maxFailedAudits is after how many calls in a row that were not answered at all no other is made.
const maxFailedAudits = 3

// check judges the SKUs that were swept, and some of those that were broken before, although they may be gone.
func (a *auditor) check(ctx context.Context, swept []string) {
	slices.Sort(swept)
	skus := slices.Clone(swept)
	for sku := range a.known {
		if len(skus) >= len(swept)+sweepsPerSecond {
			break
		}
		skus = append(skus, sku)
	}
	slices.Sort(skus)
	failed := 0
	for some := range slices.Chunk(slices.Compact(skus), MaxTogether) {
		if failed++; a.audit(ctx, some, swept) {
			failed = 0
		}
		if failed == maxFailedAudits {
			return
		}
	}
}

// audit judges some SKUs. It reports whether the store answered for any of them. Numbers are kept of those in swept,
// which is sorted: the reserver may have forgotten the others, and says so only once.
func (a *auditor) audit(ctx context.Context, skus, swept []string) (answered bool) {
	ctx, cancel := context.WithTimeout(ctx, a.o.Timeout)
	defer cancel()
	a.countCall(callAudit, len(skus))
	for i, found := range a.store.InspectAll(ctx, skus) {
		if found.Err != nil {
			a.audits.WithLabelValues("failed").Inc()
			continue
		}
		answered = true
		a.audits.WithLabelValues("whole").Inc()
		if _, tracked := slices.BinarySearch(swept, skus[i]); tracked {
			a.keepNumbers(skus[i], &found)
		}
		a.judge(skus[i], &found)
	}
	return answered
}

// keepNumbers keeps the numbers for the metrics, as long as they can be read.
func (a *auditor) keepNumbers(sku string, found *Inspection) {
	n, readable := numbersOf(found)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case readable:
		a.numbers[sku] = n
	case found.none():
		delete(a.numbers, sku)
	}
}

// forget drops the numbers of a SKU that has no ledger any more.
func (a *auditor) forget(sku string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.numbers, sku)
}

// judge says what has changed since the last time.
func (a *auditor) judge(sku string, found *Inspection) {
	now, before := found.broken(), a.known[sku]
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
	attrs := []any{"sku", sku, "broken", now.names(), "total", found.Total, "held", found.Held, "sold", found.Sold,
		"state", found.State, "epoch", found.Epoch, "ver", found.Ver}
	if now != 0 {
		a.known[sku] = now
		a.o.Log.Error("ledger breaks an invariant", attrs...)
		return
	}
	delete(a.known, sku)
	a.o.Log.Info("ledger is whole again", attrs...)
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
