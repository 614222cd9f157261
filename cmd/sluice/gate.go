package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"sluice/accesslog"
	"sluice/admin"
	"sluice/cache"
	"sluice/config"
	"sluice/limiter"
	"sluice/proxy"
	"sluice/stockgate"
	"sluice/stockgate/driver"
	"sluice/stockgate/ledger"
	"sluice/stockgate/sale"
	"sluice/tracing"
	"sluice/upstream"
)

// gate is everything between the shoppers and the shop, wired and not yet listening.
type gate struct {
	config  *config.Config // that it started with
	proxy   *proxy.Proxy
	server  *proxy.Server
	adopter atomic.Pointer[proxy.Server] // server, as soon as there is one
	shop    *upstream.Pool
	limits
	sharing  *sharing
	cache    *cache.Cache
	stock    *stockgate.Gate // nil when stock.source is "off"
	orders   *orders         // nil when no route reserves, or a driver does
	driver   *driver.Desk    // nil when no driver reserves
	board    *sale.Board
	opening  *opening           // nil when nothing is opened by the schedule
	lessons  *stockgate.Lessons // of the shop
	store    store              // nil likewise
	redis    *stockgate.Redis
	control  controls
	helm     *helm
	door     *admin.Door
	trail    *admin.Trail
	watch    *admin.Watch     // nil until somebody can ask
	page     *admin.Dashboard // likewise
	begun    time.Time
	checked  *admin.Preflight
	probes   []admin.Check // of readiness
	draining atomic.Bool
	access   *accesslog.Log
	tracer   *tracing.Tracer // nil = no traces
	now      func() int64
	metrics  *prometheus.Registry
	reloaded prometheus.Gauge // 1, or 0 when the last file was bad
	log      *slog.Logger
}

// trial is the stock of source "memory", where somebody has filled it before. nil makes an empty one.
type trial struct {
	shop   *stockgate.Memory
	ledger *ledger.Memory
}

// newGate wires the parts as c says.
func newGate(c *config.Config, memory trial, log *slog.Logger) (*gate, error) {
	start := time.Now()
	g := &gate{config: c, now: func() int64 { return int64(time.Since(start)) }, metrics: prometheus.NewRegistry(),
		reloaded: reloadGauge(), log: log, begun: start, door: admin.NewDoor(), trail: admin.NewTrail(log)}
	var err error
	if g.access, err = openAccessLog(c, g.now, log); err != nil {
		return nil, err
	}
	g.limits = newLimits(c, g.now)
	g.sharing = &sharing{windows: g.windows, now: g.now, metrics: g.metrics, log: log}
	if err := g.openStock(memory.shop, log); err != nil {
		g.close()
		return nil, err
	}
	if err := g.openSales(); err != nil {
		g.close()
		return nil, err
	}
	if reserves(c) {
		if g.orders, err = openOrders(c, memory.ledger, g.mirror(), clocks{g.now, g.board.Wall}, log); err != nil {
			g.close()
			return nil, err
		}
		g.metrics.MustRegister(g.orders)
	}
	if drives(c) {
		if g.driver, err = openDriver(c, g.now, log); err != nil {
			g.close()
			return nil, err
		}
		g.metrics.MustRegister(g.driver)
	}
	if g.shop, err = upstream.New(upstreamOptions(c, g.adopt, log)); err != nil {
		g.close()
		return nil, c.Errorf("upstream.targets", "%v", err)
	}
	if g.tracer, err = openTraces(c, log); err != nil {
		g.close()
		return nil, err
	}
	if g.tracer != nil {
		g.metrics.MustRegister(g.tracer)
	}
	if err := g.sharing.begin(c); err != nil {
		g.close()
		return nil, err
	}
	if g.cache, err = cache.New(cacheOptions(c)); err != nil {
		g.close()
		return nil, c.Errorf("cache.size", "%v", err)
	}
	ask, use := g.limits.prepare(c)
	use()
	if g.proxy, err = proxy.New(g.options(c, ask, nil)); err != nil {
		g.close()
		return nil, err
	}
	listening, err := serverOptions(c, connections{g.conns}, log)
	if err != nil {
		g.close()
		return nil, err
	}
	g.server = proxy.NewServer(g.proxy, listening)
	g.adopter.Store(g.server)
	if g.orders != nil {
		if err := g.orders.await(); err != nil {
			g.close()
			return nil, err
		}
		g.opening = openBySales(c, g.board, g.orders, log)
	}
	g.metrics.MustRegister(g.access, g.proxy.Counters(), g.server.Collector(), g.shop, g.windows, g.inFlight, g.conns,
		g.rates, g.cache, g.reloaded, buildInfo(),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	g.helm = newHelm(g, log)
	g.checked = admin.NewPreflight(g.preflight)
	return g, nil
}

// adopt has the event loops wait for a new connection to the upstream.
func (g *gate) adopt(c net.Conn) net.Conn {
	if s := g.adopter.Load(); s != nil {
		return s.Adopt(c)
	}
	return c
}

// options are those of a Proxy on the parts of g, which takes over from before. ask is what its checks ask.
func (g *gate) options(c *config.Config, ask proxy.Limiters, before *proxy.Proxy) proxy.Options {
	o := proxyOptions(c)
	o.Settlement = settlement(&g.config.Stock.Reserve) // the ledger keeps to what it was opened with
	o.Upstream, o.Limiters, o.Now, o.Log, o.Before = g.shop, ask, g.now, g.log, before
	o.AccessLog, o.Bounds, o.Version = g.accessLogger(c), bounds(c), c.Version()
	o.Unit = fmt.Sprintf("stock.per_unit: %d", g.config.Stock.PerUnit)
	if caches(c) {
		o.Cache = g.cache
	}
	for i := range o.Routes {
		o.Routes[i].Concurrency, o.Routes[i].Bound = g.inFlight.of(c, &c.Routes[i]), routeBound(c, &c.Routes[i])
	}
	if g.stock != nil {
		o.Stock = g.stock
	}
	if g.orders != nil {
		o.Orders = g.orders
	}
	if g.driver != nil {
		o.Orders = g.driver
	}
	o.Schedule, o.Feedback, o.Availability = g.board, taught{g.lessons, g.orders}, g.shelf(c)
	if g.tracer != nil {
		o.Tracer = g.tracer
	}
	return o
}

// close ends what newGate started; the server must have been drained.
func (g *gate) close() {
	if g.helm != nil {
		g.helm.close()
	}
	if g.watch != nil {
		g.watch.Close()
	}
	if g.sharing != nil {
		g.sharing.close()
	}
	g.opening.close()
	if g.orders != nil {
		g.orders.close()
	}
	if g.board != nil {
		g.board.Close()
	}
	g.closeDriver()
	if g.stock != nil {
		g.stock.Close()
	}
	if g.redis != nil {
		_ = g.redis.Close()
	}
	if g.shop != nil {
		g.shop.Close()
	}
	if g.inFlight != nil {
		g.inFlight.close()
	}
	if g.tracer != nil {
		g.tracer.Close()
	}
	g.access.Close()
}

// drain waits for what is under way, at most for timeout.
func (g *gate) drain(timeout time.Duration) (cut int) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return g.server.Drain(ctx)
}

// compiles is the rule that every route's pattern and variables can be understood, and the certificate read.
func compiles(c *config.Config) (errs []error) {
	if c.Server.TLS != nil && c.Server.TLS.CertFile != "" && c.Server.TLS.KeyFile != "" {
		if _, err := tlsConfig(c.Server.TLS, slog.Default()); err != nil {
			errs = append(errs, c.Errorf("server.tls", "%v", err))
		}
	}
	errs = append(errs, drivable(c)...)
	for _, err := range proxy.CompileRoutes(routes(c)) {
		var at *proxy.RouteError
		if !errors.As(err, &at) {
			errs = append(errs, err)
			continue
		}
		for i := range c.Routes {
			if c.Routes[i].Name == at.Route {
				errs = append(errs, c.Errorf(fmt.Sprintf("route[%d].%s", i+1, at.Key), "%v", at.Err))
				break
			}
		}
	}
	errs = append(errs, pagesCompile(c)...)
	errs = append(errs, proofCompiles(c)...)
	return append(errs, ratesCompile(c)...)
}

// newWindows lays windows with a phase of this instance's own.
func newWindows(c *config.Config) *limiter.WindowLimiter {
	w := c.Limits.Window
	return limiter.NewWindowLimiter(limiter.Grid{Size: w.Size, Phase: rand.N(w.Size), Carry: w.Carry},
		limiter.Caps{All: w.Max, PerSKU: w.MaxPerSKU, WarmUp: w.WarmUp})
}

func buildInfo() prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_build_info", Help: "The version that runs; always 1.",
		ConstLabels: prometheus.Labels{"version": version}})
	g.Set(1)
	return g
}
