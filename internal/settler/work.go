package settler

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"sluice/admin"
	"sluice/config"
)

// Work works the jobs of every home by the configured webhook until ctx ends, and serves health and metrics.
func Work(ctx context.Context, c *config.Config, version string, log *slog.Logger) error {
	j := c.Settle.Jobs
	switch {
	case len(j.Kinds) == 0:
		return c.Errorf("settle.jobs.kinds", `is []: name what jobs follow, like ["order.sold"], on PostgreSQL`)
	case j.URL == "":
		return c.Errorf("settle.jobs.url", `is "": name what gets the jobs, or work them by River in a program of your own`)
	}
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_settler_job_requests_total",
		Help: "Requests to the webhook of jobs: 2xx, 3xx, 4xx, 5xx, or error without a response."}, []string{"code"})
	requests.WithLabelValues("2xx") // which is 0, and there
	metrics := newMetrics(version)
	metrics.MustRegister(requests)
	var watches []*jobWatch
	defer func() {
		for _, w := range watches {
			w.pool.Close()
		}
	}()
	for _, name := range c.Settle.HomeNames() {
		at := c.AtHome(name)
		pool, err := openJobs(at.Settle.URL, string(at.Settle.Password))
		if err != nil {
			return c.Errorf("settle.database", "%v", err)
		}
		w := &jobWatch{pool: pool, queue: jobQueue, states: jobStates()}
		metrics.add(c, name, []admin.Check{{Name: "database", Probe: w.probe}}, w)
		watches = append(watches, w)
		beside.Go(func() { w.run(ctx) })
	}
	if err := metrics.serve(ctx, &beside, "settle.jobs.listen", j.Listen, log); err != nil {
		return err
	}
	ended := make(chan error)
	for _, w := range watches {
		go func() {
			ended <- workJobs(ctx, w.pool, jobOptions{Queue: jobQueue, Workers: jobWorkers, URL: j.URL, Key: []byte(j.Key),
				Timeout: jobTimeout, Log: log, Requests: requests})
		}()
	}
	var faults []error
	for range watches {
		if err := <-ended; err != nil {
			faults = append(faults, err)
			cancel()
		}
	}
	return errors.Join(faults...)
}

const (
	jobQueue   = "sluice"         // River's queue of these jobs
	jobWorkers = 10               // jobs that are worked at the same time; Retry-After slows them
	jobTimeout = 30 * time.Second // of one request with its response
)

// jobWatch knows how many jobs of a database wait. It is safe for concurrent use.
type jobWatch struct {
	pool  *pgxpool.Pool
	queue string

	mu     sync.Mutex
	states map[string]int64
	oldest time.Duration
	asked  bool
	err    error
}

func (w *jobWatch) run(ctx context.Context) {
	every(ctx, func(ctx context.Context) {
		states, oldest, err := waitingJobs(ctx, w.pool, w.queue)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.asked, w.err = true, err; err == nil {
			w.states, w.oldest = states, oldest
		}
	})
}

func (w *jobWatch) probe() (string, admin.Health) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.err != nil:
		return w.err.Error() + "; jobs wait", admin.Degraded
	case !w.asked:
		return "it was not asked yet", admin.Degraded
	}
	return "it answers", admin.Healthy
}

// Describe implements prometheus.Collector.
func (w *jobWatch) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(w, ch) }

// Collect implements prometheus.Collector. While the database is away its numbers are those that it gave last.
func (w *jobWatch) Collect(ch chan<- prometheus.Metric) {
	w.mu.Lock()
	defer w.mu.Unlock()
	gauge := func(v float64, name, help string, labels []string, values ...string) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, v, values...)
	}
	up := 0.0
	if w.asked && w.err == nil {
		up = 1
	}
	gauge(up, "sluice_settler_database_up", "Whether the database answered when it was asked last: 1, or 0.", nil)
	gauge(w.oldest.Seconds(), "sluice_settler_jobs_oldest_seconds",
		"For how long the oldest job that may be worked has waited; 0: there is none.", nil)
	for state, n := range w.states {
		gauge(float64(n), "sluice_settler_jobs", "Jobs in the database, by River's state.", []string{"state"}, state)
	}
}
