// Package gateway wires a gateway from its configuration: limits, stock, ledger, upstream, proxy, listeners. It reloads
// the configuration, keeps the overrides of operators, and drains. It does not parse command lines, and decides about
// no request.
//
// New opens what outlives every configuration. swap builds the rest for each of them: what a new configuration changes
// is built anew or opened, and what goes on is told of it. A reload reads the files, lays the overrides of operators
// over them, and swaps.
package gateway

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"sluice/accesslog"
	"sluice/admin"
	"sluice/cache"
	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/embedredis"
	"sluice/proxy"
	"sluice/proxy/metrics"
	"sluice/stockgate"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
	"sluice/stockgate/sale"
	"sluice/tracing"
	"sluice/upstream"
)

// Gateway is everything between clients and the upstream, wired and not yet listening.
type Gateway struct {
	Config  *config.Config                // that it started with
	running atomic.Pointer[config.Config] // in force; nil = none yet. It is replaced, never changed
	version string
	begun   time.Time
	now     func() int64
	log     *slog.Logger
	Metrics *prometheus.Registry

	// What each configuration replaces. Only changes read it.
	proxy  *proxy.Proxy
	tracer *tracing.Tracer // nil = no traces

	// What goes on when the configuration changes. A part may replace what is within it: windows, rooms, targets.
	counters   *metrics.Counters
	Server     *proxy.Server
	deciders   []*proxy.Server              // of [[decide]], in their order
	adopter    atomic.Pointer[proxy.Server] // Server, as soon as there is one
	secure     *tls.Config                  // nil = plain HTTP
	shop       *upstream.Pool
	limits     *limiters
	cache      *cache.Cache
	memory     *embedredis.Server // of source "memory"
	link       redisLink
	redis      *stockgate.Redis // the shop's own; nil with source "memory"
	source     stockgate.Source // what Stock reads; nil when stock.source is "off"
	Stock      *stockgate.Gate  // nil likewise
	Store      stores.Store     // nil likewise
	schedule   *sale.Schedule
	writer     atomic.Pointer[sale.Writer] // of sales, into the shop's keys; nil without Redis
	feedback   *stockgate.SoldOutFeedback  // of the shop
	orders     atomic.Pointer[orderLedger]
	queue      atomic.Pointer[orderQueue] // nil while no order waits until it is delivered
	rooms      *rooms
	demand     *stockgate.Watch
	access     *accesslog.Log
	unread     *proxy.UnreadBodies
	traced     tracing.Counts
	controller *controller
	fleet      *membership
	control    controls // the control API
	ops        controls
	door       *admin.LoginThrottle
	trail      *admin.AuditLog
	watch      *admin.History       // nil without a control API
	page       *admin.Dashboard     // likewise
	shown      *prometheus.Registry // by watch; likewise
	checked    *admin.Preflight
	draining   atomic.Bool
	reloaded   prometheus.Gauge // 1, or 0 when the last file was bad

	retiring sync.WaitGroup // of parts that were replaced
	closers  []func()       // of what is open, in the order in which it was opened
}

// Options are what a gateway has beside its configuration.
type Options struct {
	Version string
	Memory  *embedredis.Server // of source "memory", where the caller has filled it before; nil = an empty one
}

// New wires the parts as c says.
func New(c *config.Config, o Options, log *slog.Logger) (*Gateway, error) {
	start := time.Now()
	g := &Gateway{Config: c, version: o.Version, now: func() int64 { return int64(time.Since(start)) },
		Metrics: prometheus.NewRegistry(), memory: o.Memory,
		reloaded: reloadGauge(), log: log, begun: start, door: admin.NewLoginThrottle(), trail: admin.NewAuditLog(log),
		unread: proxy.NewUnreadBodies(log)}
	g.controller = newController(g, log)
	if err := g.openAll(); err != nil {
		g.Close()
		return nil, err
	}
	g.Metrics.MustRegister(g.access, g.counters, g.Server, g.shop, g.cache, g.door,
		g.unread, g.reloaded, buildInfo(o.Version), g.clockSkewGauge(), g.fleet, g.rooms, &g.traced,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	g.Metrics.MustRegister(g.limits.Collectors()...)
	g.onClose(g.controller.close)
	g.onClose(g.fleet.close)
	g.checked = admin.NewPreflight(g.preflight)
	go g.controller.attend()
	return g, nil
}

// openAll opens what goes on when the configuration changes, and applies the first one.
func (g *Gateway) openAll() (err error) {
	c := g.Config
	if g.access, err = openAccessLog(c, g.now, g.log); err != nil {
		return err
	}
	g.onClose(g.access.Close)
	g.onClose(g.link.close)
	g.limits = newLimiters(c, g.now, g.log)
	g.onClose(g.limits.Close)
	if g.memory == nil && c.Stock.Source == "memory" {
		g.memory = embedredis.Start()
		g.onClose(g.memory.Stop)
	}
	if err := g.openStock(g.log); err != nil {
		return err
	}
	if err := g.openSales(); err != nil {
		return err
	}
	if g.shop, err = openUpstream(c, g.adopt, g.log); err != nil {
		return c.Errorf("upstream.targets", "%v", err)
	}
	g.onClose(g.shop.Close)
	if g.cache, err = cache.New(cacheOptions(c)); err != nil {
		return c.Errorf("cache.size", "%v", err)
	}
	if g.secure, err = tlsConfig(c.Server.TLS, g.log); err != nil {
		return c.Errorf("server.tls", "%v", err)
	}
	g.openRooms()
	g.fleet = newMembership(g)
	if err := g.swap(c); err != nil {
		return err
	}
	g.onClose(g.rooms.Close)
	g.onClose(g.endTraces)
	return nil
}

// openRooms makes the waiting rooms, which follow the sales and the ledgers.
func (g *Gateway) openRooms() {
	g.rooms = newRooms(roomSources{Schedule: g.schedule, Now: g.now, Log: g.log, Ledger: g.reserver,
		Link: func() (*redisconn.Client, error) { return g.link.of(g.Config, g.log) },
		Audit: func(room, commit string) {
			g.trail.Record(admin.AuditEntry{What: "room.commit", Object: room, Detail: commit},
				"room: there is a draw", "room", room, "draw_commit", commit)
		}})
}

// endTraces sends what is queued.
func (g *Gateway) endTraces() {
	if g.tracer != nil {
		g.tracer.Close()
	}
	g.retiring.Wait()
}

// Orders is the ledger; nil = no route has reserved.
func (g *Gateway) Orders() *orderLedger { return g.orders.Load() }

// reserver is that of the ledger; nil = none is open.
func (g *Gateway) reserver() *ledger.Reserver {
	if o := g.Orders(); o != nil {
		return o.Reserver()
	}
	return nil
}

// buildLedger opens the ledger as soon as a route reserves, and waits for the first attempt. It stays open: orders
// under way must be decided.
func (g *Gateway) buildLedger(r *runtime) (err error) {
	switch {
	case r.orders != nil:
		use, err := r.orders.Prepare(r.config, g.mirror(r.config))
		r.use = append(r.use, use)
		return err
	case !r.config.UsesLedger():
		return nil
	}
	r.orders, err = openLedger(r.config, g.memory, g.mirror(r.config), orderClocks{Now: g.now, Wall: g.schedule.Wall},
		g.log)
	if err != nil {
		return err
	}
	r.undo = append(r.undo, r.orders.Close)
	r.use = append(r.use, func() {
		g.orders.Store(r.orders)
		g.onClose(r.orders.Close)
		g.onClose(r.orders.endCounts)
		g.onClose(openBySales(g.schedule, r.orders, g.log).Close)
		g.Metrics.MustRegister(r.orders)
		if g.shown != nil {
			g.shown.MustRegister(r.orders)
		}
		g.controller.awake()
	})
	return r.orders.Await()
}

// checkName finds out whether the name is another shop's, as soon as something is kept under it. A ledger finds it out
// by itself.
func (g *Gateway) checkName(r *runtime) error {
	if !r.config.SharesRedis() || r.orders != nil || g.running.Load() != nil && g.running.Load().SharesRedis() {
		return nil
	}
	return stores.CheckName(r.config)
}

// buildQueue begins the delivery of orders that wait as soon as a route has them wait, or some were found that an
// earlier configuration has left. It goes on when no route does so any more: what waits is delivered.
func (g *Gateway) buildQueue(r *runtime) (err error) {
	queue := g.queue.Load()
	if queue == nil {
		if r.orders == nil || !r.config.Queues() && !r.orders.left.waiting.Load() {
			return nil
		}
		if queue, err = openQueue(r.config, queueParts{Store: r.orders.Store, Upstream: g.shop,
			Reserver: r.orders.Reserver, Draining: g.draining.Load, Log: g.log, SoldOut: func(sku string) {
				soldOutFeedback{g.feedback, r.orders}.Record(g.now(), []byte(sku), true)
			}}); err != nil {
			return err
		}
	}
	r.parts.Queue = queue
	r.use = append(r.use, func() {
		queue.Use(r.config, g.outcomeRules(r.config), r.orders.Status())
		if g.queue.Swap(queue) == nil {
			g.onClose(func() { queue.Close(0) })
			r.orders.left.delivered.Store(true)
			g.Metrics.MustRegister(queue)
		}
	})
	return nil
}

// outcomeRules is how c reads the shop's answers to orders.
func (g *Gateway) outcomeRules(c *config.Config) proxy.OutcomeRules {
	rules := outcomeRules(&c.Stock.Reserve)
	rules.Unread = g.unread
	return rules
}

// adopt has the event loops wait for a new connection to the upstream.
func (g *Gateway) adopt(c net.Conn) net.Conn {
	if s := g.adopter.Load(); s != nil {
		return s.Adopt(c)
	}
	return c
}

// proxyOptions are those of a Proxy on the parts of r and g, which takes over from the one before. ask is what its
// checks ask.
func (g *Gateway) proxyOptions(r *runtime, ask proxy.Limiters) proxy.Options {
	c, o := r.config, proxyOptions(r.config)
	o.Outcomes = g.outcomeRules(c)
	if o.SoldOutOn != nil {
		o.SoldOutOn.Unread = g.unread
	}
	o.Upstream, o.Limiters, o.Now, o.Log, o.Before = g.shop, ask, g.now, g.log, g.proxy
	o.AccessLog, o.Version = g.accessLogger(c), c.Version()
	if c.KeepsPages() {
		o.Cache = g.cache
	}
	for i := range o.Routes {
		o.Routes[i].Concurrency, o.Routes[i].Bound = g.limits.OfRoute(c, &c.Routes[i])
	}
	if g.Stock != nil {
		o.Stock = g.Stock
	}
	if r.orders != nil {
		o.Orders = r.orders
	}
	o.Schedule, o.Feedback, o.Availability = g.schedule, soldOutFeedback{g.feedback, r.orders}, g.availability(r)
	o.Queue, o.Rooms, o.Tracer = r.parts.Queue, r.parts.Rooms, r.parts.Tracer
	return o
}

// onClose has Close call end, before what was opened earlier is ended.
func (g *Gateway) onClose(end func()) { g.closers = append(g.closers, end) }

// Close ends what New started; the server must have been drained. A change under way is made first.
func (g *Gateway) Close() {
	g.controller.stopChanges()
	for _, end := range slices.Backward(g.closers) {
		end()
	}
}

// Drain waits for what is under way, at most for timeout: for deliveries first, half of it.
func (g *Gateway) Drain(timeout time.Duration) (cut int) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	g.queue.Load().Close(timeout / 2)
	return g.Server.Drain(ctx)
}
