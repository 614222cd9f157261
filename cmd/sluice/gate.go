package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/redis/go-redis/v9"

	"sluice/accesslog"
	"sluice/admin"
	"sluice/cache"
	"sluice/config"
	"sluice/limiter"
	"sluice/proxy"
	"sluice/stockgate"
	"sluice/stockgate/driver"
	"sluice/stockgate/layout"
	"sluice/stockgate/ledger"
	"sluice/stockgate/link"
	"sluice/stockgate/sale"
	"sluice/tracing"
	"sluice/upstream"
)

// gate is everything between the shoppers and the shop, wired and not yet listening.
type gate struct {
	config   *config.Config // that it started with
	proxy    *proxy.Proxy
	server   *proxy.Server
	shop     *upstream.Pool
	windows  *limiter.Windows
	sharing  *sharing
	inFlight *inFlight
	conns    *limiter.Conns
	rates    *limiter.Rates
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
	watch    *admin.Watch // nil until somebody can ask
	begun    time.Time
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
	g := &gate{config: c, now: func() int64 { return int64(time.Since(start)) }, metrics: prometheus.NewRegistry(), reloaded: reloadGauge(), log: log,
		begun: start, door: admin.NewDoor(), trail: admin.NewTrail(log)}
	var err error
	if g.access, err = openAccessLog(c, g.now, log); err != nil {
		return nil, err
	}
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
		g.opening = openBySales(c, g.board, g.orders, log)
	}
	if drives(c) {
		if g.driver, err = openDriver(c, g.now, log); err != nil {
			g.close()
			return nil, err
		}
		g.metrics.MustRegister(g.driver)
	}
	if g.shop, err = upstream.New(upstreamOptions(c, log)); err != nil {
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
	g.windows = newWindows(c)
	g.sharing = &sharing{windows: g.windows, now: g.now, metrics: g.metrics, log: log}
	if err := g.sharing.begin(c); err != nil {
		g.close()
		return nil, err
	}
	g.inFlight = newInFlight(g.now)
	g.inFlight.use(c)
	if g.cache, err = cache.New(cacheOptions(c)); err != nil {
		g.close()
		return nil, c.Errorf("cache.size", "%v", err)
	}
	g.conns = limiter.NewConns(c.Limits.Connection.MaxOpen, c.Limits.Connection.MaxOpenPerIP)
	g.rates = limiter.NewRates(g.now)
	rates := g.rates.Prepare(rateSpecs(c))
	g.rates.Use(rates)
	if g.proxy, err = proxy.New(g.options(c, rates, nil)); err != nil {
		g.close()
		return nil, err
	}
	listening, err := serverOptions(c, connections{g.conns}, log)
	if err != nil {
		g.close()
		return nil, err
	}
	g.server = proxy.NewServer(g.proxy, listening)
	g.metrics.MustRegister(g.access, g.proxy, g.server, g.shop, g.windows, g.inFlight, g.conns, g.rates, g.cache, g.reloaded, buildInfo(),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	g.helm = newHelm(g, log)
	return g, nil
}

// options are those of a Proxy on the parts of g, which takes over from before. rates are those of c.
func (g *gate) options(c *config.Config, rates []*limiter.Rate, before *proxy.Proxy) proxy.Options {
	o := proxyOptions(c)
	o.Settling = settling(&g.config.Stock.Reserve) // the ledger keeps to what it was opened with, and so does who settles
	o.Shop, o.Windows, o.Now, o.Log, o.Before = g.shop, g.windows, g.now, g.log, before
	o.Journal, o.Bounds, o.Version = g.journal(c), bounds(c), c.Version()
	o.Places = g.inFlight.total(c)
	o.Unit = fmt.Sprintf("stock.per_unit: %d", g.config.Stock.PerUnit)
	if caches(c) {
		o.Pages = g.cache
	}
	for i := range o.Routes {
		o.Routes[i].Places, o.Routes[i].Bound = g.inFlight.of(c, &c.Routes[i]), routeBound(c, &c.Routes[i])
	}
	for i := range rates {
		o.Rates[i].Tokens = rates[i]
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
	o.Sales, o.Lessons, o.Shelf = g.board, taught{g.lessons, g.orders}, g.shelf(c)
	if g.tracer != nil {
		o.Tracer = g.tracer
	}
	return o
}

// openStock makes the stock gate and what it reads.
func (g *gate) openStock(memory *stockgate.Memory, log *slog.Logger) error {
	c := g.config
	var source stockgate.Source
	switch c.Stock.Source {
	case "off":
		return nil
	case "memory":
		if memory == nil {
			memory = stockgate.NewMemory()
		}
		source, g.store = memory, store{memory, memory}
	default:
		r, err := openRedis(c, log)
		if err != nil {
			return err
		}
		if err := fits(c, r); err != nil {
			_ = r.Close()
			return err
		}
		g.redis, source, g.store = r, r, store{r, r}
		g.metrics.MustRegister(r)
	}
	var err error
	g.stock, err = stockgate.New(stockgate.Options{
		Refresh:       c.Stock.Refresh,
		SoldOutMemory: c.Stock.SoldOutMemory,
		PerUnit:       c.Stock.PerUnit,
		AllowOnError:  c.Stock.OnError == "allow",
		AllowUnknown:  c.Stock.UnknownSKU == "allow",
		Wait:          c.Stock.Redis.Timeout + 50*time.Millisecond, // one command, and its turn
		Bought:        g.bought(),
		Now:           g.now,
		Log:           log,
	}, source)
	if err == nil {
		g.metrics.MustRegister(g.stock)
	}
	return err
}

// bought asks the shop's own set who has bought; nil when it keeps none.
func (g *gate) bought() func(context.Context, []stockgate.Buyer) error {
	if g.redis == nil || !g.redis.HasUsers() {
		return nil
	}
	return g.redis.Bought
}

// shopLayout compiles how the shop keeps its stock.
func shopLayout(c *config.Config) (*layout.Layout, error) {
	o := c.Stock.Layout
	l, err := layout.New(layout.Options{
		Type: o.Type, Key: o.Key, TotalField: o.TotalField, SoldField: o.SoldField, LeftField: o.LeftField,
		StatusKey: o.StatusKey, StatusField: o.StatusField, StatusOpen: o.StatusOpen, UsersKey: o.UsersKey,
		SoldOutAt: int64(o.SoldOutAt), SoldOutFlag: o.SoldOutFlag, Prefix: o.Prefix, Script: o.Script,
	})
	if err != nil {
		return nil, c.Errorf("stock.layout", "%v", err)
	}
	if c.Stock.Redis.Topology == link.Cluster {
		if err := l.InOneSlot(link.Tag); err != nil {
			return nil, c.Errorf("stock.layout", "%v", err)
		}
	}
	return l, nil
}

// silent is what the Redis client may log: it repeats for each failed attempt what the gate says once.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// openRedis connects to the configured Redis, in the shop's layout.
func openRedis(c *config.Config, log *slog.Logger) (*stockgate.Redis, error) {
	l, err := shopLayout(c)
	if err != nil {
		return nil, err
	}
	o := linkOptions(c)
	o.Log = log
	return stockgate.NewRedis(o, l)
}

// fits refuses a cluster that was found just now, where the layout cannot be used. A Redis that is away is waited for: the
// same is found out then, and every answer is an error.
func fits(c *config.Config, r *stockgate.Redis) error {
	if err := r.Fit(context.Background()); errors.Is(err, layout.ErrApart) {
		return c.Errorf("stock.layout", "%v", err)
	}
	return nil
}

// linkOptions say how the configured Redis is reached.
func linkOptions(c *config.Config) link.Options {
	redis.SetLogger(silent{})
	r := c.Stock.Redis
	var secure *tls.Config
	if r.TLS {
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return link.Options{
		Topology: r.Topology, MasterName: r.MasterName, Addresses: r.Addresses, Username: r.Username, Password: string(r.Password), DB: r.DB, TLS: secure,
		PoolSize: r.PoolSize, ConnectTimeout: r.ConnectTimeout, Timeout: r.Timeout,
		BreakerErrors: r.BreakerErrors, BreakerPause: r.BreakerPause,
	}
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
func newWindows(c *config.Config) *limiter.Windows {
	w := c.Limits.Window
	return limiter.NewWindows(limiter.Grid{Size: w.Size, Phase: rand.N(w.Size), Carry: w.Carry},
		limiter.Caps{All: w.Max, PerSKU: w.MaxPerSKU, WarmUp: w.WarmUp})
}

func buildInfo() prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_build_info", Help: "The version that runs; always 1.", ConstLabels: prometheus.Labels{"version": version}})
	g.Set(1)
	return g
}

// connections counts those of trusted proxies in all alone.
type connections struct{ *limiter.Conns }

func (c connections) Open(client netip.Addr, perClient bool) proxy.Reason {
	if !perClient {
		client = netip.Addr{}
	}
	switch c.Conns.Open(client) {
	case limiter.Admitted:
		return proxy.Admitted
	case limiter.TotalFull:
		return proxy.ConnOpen
	}
	return proxy.IPConns
}

func (c connections) Close(client netip.Addr, perClient bool) {
	if !perClient {
		client = netip.Addr{}
	}
	c.Conns.Close(client)
}
