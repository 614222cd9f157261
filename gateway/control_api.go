package gateway

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/listener"
	"sluice/proxy/metrics"
)

// controls is what operators and their machines ask. It follows the configuration.
type controls struct{ now atomic.Pointer[http.Handler] }

func (c *controls) use(h http.Handler) { c.now.Store(&h) }

// ServeHTTP implements http.Handler.
func (c *controls) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*c.now.Load()).ServeHTTP(w, r) }

// api speaks of what the routes of c look at. A ledger that no route takes from any more still has orders to decide.
func (g *Gateway) api(c *config.Config, log *slog.Logger) http.Handler {
	api := admin.API{
		Token: string(c.Admin.Token), ViewerToken: string(c.Admin.ViewerToken),
		ConsumerToken: string(c.Admin.ConsumerToken),
		Login:         g.door, AuditLog: g.trail, Log: log,
		Gate: g, Controller: g.controller, History: g.watch, TopKeys: topKeys(g.counters, g.now), Why: g.why,
		Dashboard: g.page, Preflight: g.checked,
	}
	if g.Stock != nil && (c.HasGate("check") || !c.UsesLedger()) {
		api.Store = g.Store // no route reads a layout's key otherwise
	}
	if kept := g.ledgers(c); kept != nil {
		api.Ledgers, api.LayoutFirst = kept, !c.UsesLedger()
	}
	if o := g.Orders(); o != nil && c.Settle.Database != "" {
		api.Settlements = stores.Settlements(o.Store)
	}
	if g.schedule != nil {
		api.Sales = stores.Sales{Schedule: g.schedule}
	}
	if len(c.Rooms) > 0 {
		api.Rooms = g.rooms
	}
	if queue := g.queue.Load(); queue != nil {
		api.Queue = queue
	}
	return api.Handler()
}

// ledgers are those of this gateway; nil = it keeps none.
func (g *Gateway) ledgers(c *config.Config) *stores.Ledgers {
	o := g.Orders()
	if o == nil {
		return nil
	}
	return stores.NewLedgers(c, o.Store, o.Reserver)
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

// ListenAdmin serves admin.listen and ops.listen, where they are set. takeOver lets another process listen there at the
// same time. After an error nothing listens.
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
		go func() { _ = s.Serve(listener.Bounded(ln, g.limits.files.aside())) }() // ends with close
		log.Info("listening for operators", "key", key, "address", ln.Addr().String())
		return nil
	}
	g.controller.changing.Lock() // orders that wait may be found at once, and change what this reads and sets
	defer g.controller.changing.Unlock()
	if g.Config.Admin.Listen != "" {
		g.watch, g.page = admin.NewHistory(g.counters.Traffic, g.dashboardMetrics()), admin.NewDashboard()
		g.onClose(g.watch.Close)
	}
	g.useControls()
	if err := open("ops.listen", g.Config.Ops.Listen, &g.ops); err != nil {
		return nil, err
	}
	return servers, open("admin.listen", g.Config.Admin.Listen, &g.control)
}

// useControls has operators hear of the configuration in force.
func (g *Gateway) useControls() {
	g.ops.use(admin.Ops(g.checks(g.running.Load()), g.Metrics))
	g.control.use(g.api(g.running.Load(), g.log))
}
