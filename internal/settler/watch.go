package settler

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/admin"
	"sluice/internal/periodic"
	"sluice/settle/sqlstore"
)

// watchEvery is how often the database is asked what waits for an operator.
const watchEvery = 5 * time.Second

// Watch knows whether the database answers, and what waits there for an operator. It is safe for concurrent use.
type Watch struct {
	store   *sqlstore.Store
	maxSKUs int // that metrics name

	mu      sync.Mutex
	waiting sqlstore.Waiting
	err     error
	asked   bool

	awaySince time.Time // zero = it answers
}

// newWatch returns a Watch that has not asked yet. maxSKUs bounds the labels of its metrics.
func newWatch(store *sqlstore.Store, maxSKUs int) *Watch {
	return &Watch{store: store, maxSKUs: maxSKUs}
}

// run asks the database again and again until ctx ends.
func (w *Watch) run(ctx context.Context) { every(ctx, w.ask) }

// every calls f at once and each watchEvery until ctx ends, each time for no longer than until the next call.
func every(ctx context.Context, f func(context.Context)) {
	periodic.Now(ctx, watchEvery, func(ctx context.Context) {
		within, cancel := context.WithTimeout(ctx, watchEvery)
		defer cancel()
		f(within)
	})
}

func (w *Watch) ask(ctx context.Context) {
	waiting, err := w.store.Waiting(ctx)
	unfit := err
	if err == nil {
		unfit = w.store.CheckShop(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.asked = unfit, true
	switch {
	case err == nil:
		w.waiting, w.awaySince = waiting, time.Time{}
	case w.awaySince.IsZero():
		w.awaySince = time.Now()
	}
}

// away is for how long the database has not answered; 0 = it answers, or was not asked yet.
func (w *Watch) away() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.awaySince.IsZero() {
		return 0
	}
	return time.Since(w.awaySince)
}

func (w *Watch) last() (waiting sqlstore.Waiting, up bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting, w.asked && w.err == nil, w.err
}

// check is a condition of readiness.
func (w *Watch) check() admin.Check {
	return admin.Check{Name: "database", Probe: func() (string, admin.Health) {
		_, up, err := w.last()
		switch {
		case up:
			return "it answers", admin.Healthy
		case err != nil:
			return err.Error() + "; changes stay in Redis", admin.Degraded
		}
		return "it was not asked yet", admin.Degraded
	}}
}

// Describe implements prometheus.Collector.
func (w *Watch) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(w, ch) }

// Collect implements prometheus.Collector. While the database is away its numbers are those that it gave last.
func (w *Watch) Collect(ch chan<- prometheus.Metric) {
	waiting, up, _ := w.last()
	gauge := func(v float64, name, help string, labels ...string) {
		desc := prometheus.NewDesc(name, help, labels[:len(labels)/2], nil)
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels[len(labels)/2:]...)
	}
	answers := 0.0
	if up {
		answers = 1
	}
	gauge(answers, "sluice_settler_database_up", "Whether the database answered when it was asked last: 1, or 0.")
	for _, kind := range sqlstore.Kinds() {
		gauge(float64(waiting.Conflicts[kind]), "sluice_settler_conflicts",
			"Conflicts that no operator has solved.", "kind", kind)
	}
	gauge(waiting.Giveback.Seconds(), "sluice_settler_giveback_oldest_seconds",
		"Age of the oldest order that the shop gives back and that is not done; 0: there is none.")
	const name, help = "sluice_settler_difference_units", "Units sold by the ledger and not deducted, at the cursor; " +
		"below 0: deducted and not sold. SKUs that are not named are _other."
	var other int64
	for i, d := range waiting.Differences {
		if i >= w.maxSKUs {
			other += max(d.Units, -d.Units)
			continue
		}
		gauge(float64(d.Units), name, help, "sku", d.SKU)
	}
	gauge(float64(other), name, help, "sku", "_other")
}
