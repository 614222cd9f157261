package settler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/listener"
	"sluice/internal/periodic"
	"sluice/settle"
)

// ballast is memory that is never touched, and so never resident. The collector counts it: garbage grows by as many
// bytes more before it is collected. A larger GOGC would let it grow by a multiple of a ledger that is read whole.
const ballast = 8 << 20

// Run settles every home until ctx ends: it waits for the databases, migrates those of SQLite, serves health and
// metrics, and runs settlers. A home whose database is down holds up no other one. Faults of databases and Redis are
// tried again for ever.
func Run(ctx context.Context, c *config.Config, version string, log *slog.Logger) error {
	homes, err := OpenHomes(c, log)
	if err != nil {
		return err
	}
	defer homes.Close()
	defer runtime.KeepAlive(make([]byte, ballast))
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	metrics := newMetrics(version)
	workers := make([]worker, len(homes))
	for i, s := range homes {
		if workers[i], err = s.worker(c, log); err != nil {
			return err
		}
		metrics.add(c, s.home.Name, workers[i].checks(), workers[i].collected...)
	}
	if err := metrics.serve(ctx, &running, "settle.listen", c.Settle.Listen, log); err != nil {
		return err
	}
	var settling sync.WaitGroup
	for i, s := range homes {
		settling.Go(func() { s.run(ctx, workers[i], c.AtHome(s.home.Name), version, log) })
	}
	if c.Settle.RerouteAfter > 0 {
		r := rerouter{homes: homes, workers: workers, after: c.Settle.RerouteAfter, log: log}
		r.to = slices.IndexFunc(homes, func(s *Settlement) bool { return s.home.Name == c.Settle.RerouteTo })
		settling.Go(func() { every(ctx, r.run) })
	}
	settling.Wait()
	return nil
}

// worker is what settles one home.
type worker struct {
	orders    *settle.Settler
	sender    *settle.Settler // nil = no webhook
	watch     *Watch
	collected []prometheus.Collector
}

func (s *Settlement) worker(c *config.Config, log *slog.Logger) (w worker, err error) {
	w.watch = newWatch(s.Store, c.Ops.MetricsMaxSKUs)
	if w.orders, err = s.Settler(c, log); err != nil {
		return w, err
	}
	w.collected = []prometheus.Collector{w.watch, w.orders}
	if c.Settle.Webhook.URL != "" {
		var target *webhookTarget
		if w.sender, target, err = s.webhook(c, log); err != nil {
			return w, err
		}
		w.collected = append(w.collected, w.sender, target)
	}
	return w, nil
}

// checks are the conditions of readiness. A settler whose database, Redis or webhook is away is degraded, never
// unready: it needs no restart.
func (w worker) checks() []admin.Check {
	checks := []admin.Check{w.watch.check(), failing("ledgers", w.orders)}
	if w.sender != nil {
		checks = append(checks, failing("webhook", w.sender))
	}
	return checks
}

func failing(name string, s *settle.Settler) admin.Check {
	return admin.Check{Name: name, Probe: func() (string, admin.Health) {
		if text := s.Failing(); text != "" {
			return text, admin.Degraded
		}
		return "no change fails", admin.Healthy
	}}
}

// run settles one home until ctx ends.
func (s *Settlement) run(ctx context.Context, w worker, c *config.Config, version string, log *slog.Logger) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { w.watch.run(ctx) })
	running.Go(func() { every(ctx, func(ctx context.Context) { s.publish(ctx, w) }) })
	if err := s.waitForSchema(ctx, c, log); err != nil {
		return // stopped while it waited
	}
	log.Info("settle: ready", "version", version, "home", s.home.Name, "database", c.Settle.Database)
	if w.sender != nil {
		running.Go(func() { w.sender.Run(ctx) })
	}
	w.orders.Run(ctx)
	done := w.orders.Stats()
	log.Info("settle: stopped", "home", s.home.Name, "orders", done.Orders, "transactions", done.Batches,
		"rebuilds", done.Rebuilds)
}

// operated is what an operator may ask of a process: its metrics, and whether its databases answer.
type operated struct {
	*prometheus.Registry
	checks []admin.Check
}

func newMetrics(version string) *operated {
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_build_info", Help: "The version that runs; always 1.",
		ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	o := &operated{Registry: prometheus.NewRegistry()}
	o.MustRegister(collectors.NewGoCollector(), build, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return o
}

// add adds what concerns a home, which is named where there are several.
func (o *operated) add(c *config.Config, home string, checks []admin.Check, collected ...prometheus.Collector) {
	registry := prometheus.Registerer(o)
	if len(c.Settle.Homes) > 0 {
		for i := range checks {
			checks[i].Name += " " + home
		}
		registry = prometheus.WrapRegistererWith(prometheus.Labels{"home": home}, o)
	}
	registry.MustRegister(collected...)
	o.checks = append(o.checks, checks...)
}

// serve answers at the address of a key until ctx ends; "" = nowhere.
func (o *operated) serve(ctx context.Context, running *sync.WaitGroup, key, address string, log *slog.Logger) error {
	if address == "" {
		return nil
	}
	l, err := listener.Open(address, false)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	log.Info("listening for operators", "key", key, "address", l.Addr().String())
	server := &http.Server{Handler: admin.Ops(o.checks, o), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	running.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("settle: health and metrics are not served", "key", key, "err", err)
		}
	})
	running.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
	return nil
}

// waitForSchema waits until the database can be reached, has the tables of this version and is this shop's: an operator
// may migrate it while settlers wait. The tables of SQLite are made.
func (s *Settlement) waitForSchema(ctx context.Context, c *config.Config, log *slog.Logger) error {
	const again = 2 * time.Second
	for said := ""; ; {
		var err error
		if s.Store.Embedded() {
			_, err = s.Store.Migrate(ctx)
		} else {
			err = errors.Join(s.Store.CheckSchema(ctx), checkJobs(ctx, c))
		}
		if err == nil {
			err = s.Store.Claim(ctx)
		}
		if err == nil {
			return nil
		}
		if text := err.Error(); text != said {
			said = text
			log.Error("settle: the database cannot be used yet; changes stay in Redis", "home", s.home.Name, "err", err,
				"again_in", again.String())
		}
		if !periodic.Pause(ctx, again) {
			return ctx.Err()
		}
	}
}
