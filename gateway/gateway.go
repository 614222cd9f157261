// Package gateway wires a gateway from its configuration: limits, stock, ledger, upstream, proxy, listeners. It reloads
// the configuration, keeps the overrides of operators, and drains. It does not parse command lines, and decides about
// no request.
package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"sluice/accesslog"
	"sluice/admin"
	"sluice/admin/throttle"
	"sluice/admin/web"
	"sluice/cache"
	"sluice/config"
	"sluice/gateway/limits"
	"sluice/gateway/orders"
	"sluice/gateway/queueing"
	"sluice/gateway/rooms"
	"sluice/gateway/stores"
	"sluice/internal/embedredis"
	"sluice/proxy"
	"sluice/proxy/reject"
	"sluice/stockgate"
	"sluice/stockgate/demand"
	"sluice/stockgate/sale"
	"sluice/tracing"
	"sluice/upstream"
)

// Gateway is everything between clients and the upstream, wired and not yet listening.
type Gateway struct {
	Config     *config.Config // that it started with
	version    string
	proxy      *proxy.Proxy
	Server     *proxy.Server
	deciders   []*proxy.Server              // of [[decide]], in their order
	adopter    atomic.Pointer[proxy.Server] // server, as soon as there is one
	shop       *upstream.Pool
	limits     *limits.Limiters
	cache      *cache.Cache
	Stock      *stockgate.Gate                // nil when stock.source is "off"
	Orders     *orders.Ledger                 // nil when no route reserves
	queue      atomic.Pointer[queueing.Queue] // nil while no order waits until it is delivered
	schedule   *sale.Schedule
	writer     *sale.Writer               // of sales, into the shop's keys; nil without Redis
	opener     *orders.Opener             // nil when nothing is opened by the schedule
	feedback   *stockgate.SoldOutFeedback // of the shop
	unread     *proxy.UnreadBodies
	rooms      *rooms.Rooms
	Store      stores.Store     // nil likewise
	redis      *stockgate.Redis // the shop's own; nil with source "memory"
	link       redisLink
	source     stockgate.Source // what Stock reads; nil likewise
	demand     *demand.Watch
	control    controls
	controller *controller
	fleet      *membership
	door       *throttle.Login
	trail      *admin.AuditLog
	watch      *admin.History // nil without a control API
	page       *web.Dashboard // likewise
	begun      time.Time
	checked    *admin.Preflight
	probes     []admin.Check // of readiness
	draining   atomic.Bool
	access     *accesslog.Log
	tracer     *tracing.Tracer // nil = no traces
	now        func() int64
	Metrics    *prometheus.Registry
	reloaded   prometheus.Gauge // 1, or 0 when the last file was bad
	log        *slog.Logger

	closers []func() // of what is open, in the order in which it was opened
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
		Metrics:  prometheus.NewRegistry(),
		reloaded: reloadGauge(), log: log, begun: start, door: throttle.NewLogin(), trail: admin.NewAuditLog(log),
		unread: proxy.NewUnreadBodies(log)}
	var err error
	if g.access, err = openAccessLog(c, g.now, log); err != nil {
		return nil, err
	}
	g.onClose(g.access.Close)
	g.onClose(g.link.close)
	for _, open := range []func(Options) error{g.openLimitsAndStock, g.openUpstream, g.openProxy} {
		if err := open(o); err != nil {
			g.Close()
			return nil, err
		}
	}
	g.Metrics.MustRegister(g.access, g.proxy.Counters(), g.Server, g.shop, g.cache, g.door,
		g.unread, g.reloaded, buildInfo(o.Version),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	g.Metrics.MustRegister(g.limits.Collectors()...)
	g.fleet = newMembership(g)
	g.Metrics.MustRegister(g.fleet)
	g.controller = newController(g, log)
	g.onClose(g.controller.close)
	g.onClose(g.fleet.close)
	g.checked = admin.NewPreflight(g.preflight)
	go g.controller.attend()
	return g, nil
}

// openLimitsAndStock opens what the checks ask: limits, the shop's stock, schedules, and the ledger.
func (g *Gateway) openLimitsAndStock(o Options) (err error) {
	c := g.Config
	if c.SharesRedis() && !c.UsesLedger() { // a ledger finds it out
		if err := stores.CheckName(c); err != nil {
			return err
		}
	}
	g.limits = limits.New(c, g.now, g.log)
	g.onClose(g.limits.Close)
	memory := o.Memory
	if memory == nil && c.Stock.Source == "memory" {
		memory = embedredis.Start()
		g.onClose(memory.Stop)
	}
	if err := g.openStock(memory, g.log); err != nil {
		return err
	}
	if err := g.openSales(); err != nil {
		return err
	}
	if c.UsesLedger() {
		g.Orders, err = orders.Open(c, memory, g.mirror(), orders.Clocks{Now: g.now, Wall: g.schedule.Wall}, g.log)
		if err != nil {
			return err
		}
		g.onClose(g.Orders.Close)
		g.Metrics.MustRegister(g.Orders)
	}
	return nil
}

// openUpstream opens what forwards requests: the pool of connections, traces, the page cache.
func (g *Gateway) openUpstream(o Options) (err error) {
	c := g.Config
	if g.shop, err = openUpstream(c, g.adopt, g.log); err != nil {
		return c.Errorf("upstream.targets", "%v", err)
	}
	g.onClose(g.shop.Close)
	if g.tracer, err = openTraces(c, o.Version, g.log); err != nil {
		return err
	}
	if g.tracer != nil {
		g.onClose(g.tracer.Close)
		g.Metrics.MustRegister(g.tracer)
	}
	if g.cache, err = cache.New(cacheOptions(c)); err != nil {
		return c.Errorf("cache.size", "%v", err)
	}
	return nil
}

// openProxy opens the proxy and its server on the parts that are open.
func (g *Gateway) openProxy(Options) (err error) {
	c := g.Config
	ask, use := g.limits.Prepare(c)
	use()
	g.onClose(func() { g.queue.Load().Close(0) })
	if err := g.openQueue(c); err != nil {
		return err
	}
	if err := g.openRooms(); err != nil {
		return err
	}
	g.onClose(g.rooms.Close)
	if g.proxy, err = proxy.New(g.proxyOptions(c, ask, nil)); err != nil {
		return err
	}
	listening, err := serverOptions(c, g.limits.Connections(), g.log)
	if err != nil {
		return err
	}
	listening.MaxConns = g.limits.MaxClients(c)
	g.Server = proxy.NewServer(g.proxy, listening)
	g.adopter.Store(g.Server)
	g.openDeciders(listening)
	if g.Orders != nil {
		if err := g.Orders.Await(); err != nil {
			return err
		}
		g.opener = orders.OpenBySales(c, g.schedule, g.Orders, g.log)
		g.onClose(g.opener.Close)
	}
	g.openDemand()
	if g.redis != nil {
		g.writer = sale.NewWriter(g.schedule, g.redis, g.writesBack(c), g.log)
		g.onClose(g.writer.Close)
	}
	return nil
}

// openQueue starts the delivery of orders that wait as soon as a route of c has them wait, or some were found that an
// earlier configuration has left. It goes on when no route does so any more: what waits is delivered.
func (g *Gateway) openQueue(c *config.Config) error {
	if g.Orders == nil || g.queue.Load() != nil || !c.Queues() && !g.Orders.Left.Any() {
		return nil
	}
	o, began := g.Orders, *g.Config
	began.Queue, began.Routes = c.Queue, c.Routes
	queue, err := queueing.Open(&began, queueing.Parts{Store: o.Store, Upstream: g.shop, Status: o.Status(),
		Rules: g.settlement(c), Reserver: o.Reserver, Draining: g.draining.Load,
		Log: g.log})
	if err != nil {
		return err
	}
	g.queue.Store(queue)
	g.Orders.Left.Delivered()
	g.Metrics.MustRegister(queue)
	return nil
}

// settlement is how c reads the shop's answers to orders.
func (g *Gateway) settlement(c *config.Config) proxy.OutcomeRules {
	rules := settlement(&c.Stock.Reserve)
	rules.Unread = g.unread
	return rules
}

// openRooms opens the waiting rooms, which follow the sales and the ledgers.
func (g *Gateway) openRooms() (err error) {
	o := rooms.Options{Schedule: g.schedule, Now: g.now, Few: stockStatus(&g.Config.Stock).Few, Log: g.log,
		Audit: func(room, commit string) {
			g.trail.Record(admin.AuditEntry{What: "room.commit", Object: room, Detail: commit},
				"room: there is a draw", "room", room, "draw_commit", commit)
		}}
	if g.Orders != nil {
		o.Ledger = g.Orders.Reserver
	}
	if o.Pages, err = reject.NewRoomPages(responses(&g.Config.Responses)); err != nil {
		return err
	}
	if len(g.Config.Rooms) > 0 {
		if o.Link, err = g.link.of(g.Config, g.log); err != nil {
			return err
		}
	}
	if g.rooms, err = rooms.Open(g.Config, o); err != nil {
		return err
	}
	g.Metrics.MustRegister(g.rooms.Collector())
	return nil
}

// adopt has the event loops wait for a new connection to the upstream.
func (g *Gateway) adopt(c net.Conn) net.Conn {
	if s := g.adopter.Load(); s != nil {
		return s.Adopt(c)
	}
	return c
}

// options are those of a Proxy on the parts of g, which takes over from before. ask is what its checks ask.
func (g *Gateway) proxyOptions(c *config.Config, ask proxy.Limiters, before *proxy.Proxy) proxy.Options {
	o := proxyOptions(c)
	o.MaxQuantity, o.SigningKey = int64(g.Config.Stock.Reserve.MaxPerUser), []byte(g.Config.Stock.Reserve.Secret)
	o.Settlement = g.settlement(c)
	if o.SoldOutOn != nil {
		o.SoldOutOn.Unread = g.unread
	}
	o.Upstream, o.Limiters, o.Now, o.Log, o.Before = g.shop, ask, g.now, g.log, before
	o.AccessLog, o.Bounds, o.Version = g.accessLogger(c), limits.Bounds(c), c.Version()
	o.Unit = fmt.Sprintf("stock.max_in_flight_per_unit: %d", c.Stock.MaxInFlightPerUnit)
	if c.KeepsPages() {
		o.Cache = g.cache
	}
	for i := range o.Routes {
		o.Routes[i].Concurrency, o.Routes[i].Bound = g.limits.OfRoute(c, &c.Routes[i])
	}
	if g.Stock != nil {
		o.Stock = g.Stock
	}
	if g.Orders != nil {
		o.Orders = g.Orders
	}
	if queue := g.queue.Load(); queue != nil {
		o.Queue, o.MaxWaiting = queue, int64(c.Queue.MaxOrder)
	}
	o.Schedule, o.Feedback, o.Availability = g.schedule, soldOutFeedback{g.feedback, g.Orders}, g.availability(c)
	if g.tracer != nil {
		o.Tracer = g.tracer
	}
	o.Rooms = g.rooms.Proxy()
	return o
}

// onClose has Close call end, before what was opened earlier is ended.
func (g *Gateway) onClose(end func()) { g.closers = append(g.closers, end) }

// Close ends what New started; the server must have been drained.
func (g *Gateway) Close() {
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
