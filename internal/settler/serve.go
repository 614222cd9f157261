package settler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/listener"
	"sluice/settle"
	"sluice/settle/webhook"
)

// Run settles until ctx ends: it waits for the database, migrates that of SQLite, serves health and metrics, and runs a
// settler. Faults of database and Redis are tried again for ever.
func (s *Settlement) Run(ctx context.Context, c *config.Config, version string, log *slog.Logger) error {
	worker, err := s.Settler(c, log)
	if err != nil {
		return err
	}
	collected := []prometheus.Collector{worker}
	var sender *settle.Settler // nil = no webhook
	if c.Settle.Webhook.URL != "" {
		var target *webhook.Target
		if sender, target, err = s.Webhook(c, log); err != nil {
			return err
		}
		collected = append(collected, sender, target)
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	watch := NewWatch(s.Store, c.Ops.MetricsMaxSKUs)
	if c.Settle.Listen != "" {
		metrics := prometheus.NewRegistry()
		metrics.MustRegister(collected...)
		metrics.MustRegister(watch, collectors.NewGoCollector(), buildInfo(version),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		if err := serve(ctx, &running, c.Settle.Listen, admin.Ops([]admin.Check{watch.Check()}, metrics), log); err != nil {
			return err
		}
	}
	running.Go(func() { watch.Run(ctx) })
	if err := s.waitForSchema(ctx, c, log); err != nil {
		return nil // stopped while it waited
	}
	log.Info("settle: ready", "version", version, "database", c.Settle.Database)
	if sender != nil {
		running.Go(func() { sender.Run(ctx) })
	}
	worker.Run(ctx)
	done := worker.Stats()
	log.Info("settle: stopped", "orders", done.Orders, "transactions", done.Batches, "rebuilds", done.Rebuilds)
	return nil
}

// serve answers at address until ctx ends.
func serve(ctx context.Context, running *sync.WaitGroup, address string, handler http.Handler, log *slog.Logger) error {
	l, err := listener.Open(address, false)
	if err != nil {
		return fmt.Errorf("settle.listen: %w", err)
	}
	log.Info("listening for operators", "key", "settle.listen", "address", l.Addr().String())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	running.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("settle: health and metrics are not served", "error", err)
		}
	})
	running.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
	return nil
}

func buildInfo(version string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_build_info", Help: "The version that runs; always 1.",
		ConstLabels: prometheus.Labels{"version": version}})
	g.Set(1)
	return g
}

// waitForSchema waits until the database can be reached and has the tables of this version: an operator may migrate it
// while settlers wait. The tables of SQLite are made.
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
			return nil
		}
		if text := err.Error(); text != said {
			said = text
			log.Error("settle: the database cannot be used yet; changes stay in Redis", "error", err, "again_in", again)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(again):
		}
	}
}
