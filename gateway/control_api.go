package gateway

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"sluice/admin"
	"sluice/admin/web"
	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/listener"
	"sluice/proxy/metrics"
)

// controls is the control API. Which stock it speaks of follows the routes, and so changes with them.
type controls struct{ now atomic.Pointer[http.Handler] }

func (c *controls) use(h http.Handler) { c.now.Store(&h) }

// ServeHTTP implements http.Handler.
func (c *controls) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*c.now.Load()).ServeHTTP(w, r) }

// api speaks of what the routes of c look at. A ledger that no route takes from any more still has orders to decide.
func (g *Gateway) api(c *config.Config, log *slog.Logger) http.Handler {
	api := admin.API{
		Token: string(g.Config.Admin.Token), ViewerToken: string(g.Config.Admin.ViewerToken),
		ConsumerToken: string(g.Config.Admin.ConsumerToken),
		Login:         g.door, AuditLog: g.trail, Log: log,
		Gate: g, Controller: g.controller, History: g.watch, TopKeys: topKeys(g.proxy.Counters(), g.now), Why: g.why,
		Dashboard: g.page, Preflight: g.checked,
	}
	if g.Stock != nil && (c.HasGate("check") || !c.UsesLedger()) {
		api.Store = g.Store // no route reads a layout's key otherwise
	}
	if kept := g.ledgers(); kept != nil {
		api.Ledgers, api.LayoutFirst = kept, !c.UsesLedger()
	}
	if g.Orders != nil && c.Settle.Database != "" {
		api.Settlements = stores.Settlements(g.Orders.Store)
	}
	if g.schedule != nil {
		api.Sales = g.sales()
	}
	if len(g.Config.Rooms) > 0 {
		api.Rooms = g.rooms
	}
	if queue := g.queue.Load(); queue != nil {
		api.Queue = queue
	}
	return api.Handler()
}

// ledgers are those of this gateway; nil = it keeps none.
func (g *Gateway) ledgers() *stores.Ledgers {
	if g.Orders == nil {
		return nil
	}
	return stores.NewLedgers(g.Config, g.Orders.Store, g.Orders.Reserver)
}

// topKeys lists the keys that limits reject most.
func topKeys(counters *metrics.Counters, now func() int64) func(n int) []metrics.TopKey {
	return func(n int) []metrics.TopKey { return counters.TopKeys(n, now()) }
}

// AdminServers are the servers for operators and their machines.
type AdminServers []*http.Server

func (a AdminServers) Close() {
	for _, s := range a {
		_ = s.Close()
	}
}

func (g *Gateway) ListenAdmin(takeOver bool, log *slog.Logger) (AdminServers, error) {
	var servers AdminServers
	open := func(key, address string, h http.Handler) error {
		if address == "" {
			return nil
		}
		ln, err := listener.Open(address, takeOver)
		if err != nil {
			servers.Close()
			return g.Config.Errorf(key, "%v", err)
		}
		s := &http.Server{Addr: ln.Addr().String(), Handler: h, ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
		servers = append(servers, s)
		go func() { _ = s.Serve(listener.Bounded(ln, g.limits.OperatorConns())) }() // ends with close
		log.Info("listening for operators", "key", key, "address", ln.Addr().String())
		return nil
	}
	g.controller.mu.Lock() // orders that wait may be found at once, and change what this reads and sets
	defer g.controller.mu.Unlock()
	g.probes = g.Checks()
	if err := open("ops.listen", g.Config.Ops.Listen, admin.Ops(g.probes, g.Metrics)); err != nil {
		return nil, err
	}
	if g.Config.Admin.Listen != "" {
		g.watch, g.page = admin.NewHistory(g.proxy.Counters().Traffic, g.dashboardMetrics()), web.New()
		g.onClose(g.watch.Close)
	}
	g.control.use(g.api(g.Config, log))
	return servers, open("admin.listen", g.Config.Admin.Listen, &g.control)
}
