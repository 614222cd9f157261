package main

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"sluice/admin"
	"sluice/config"
	"sluice/proxy/metrics"
)

// controls is the control API. Which stock it speaks of follows the routes, and so changes with them.
type controls struct{ now atomic.Pointer[http.Handler] }

func (c *controls) use(h http.Handler) { c.now.Store(&h) }

// ServeHTTP implements http.Handler.
func (c *controls) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*c.now.Load()).ServeHTTP(w, r) }

// api speaks of what the routes of c look at. A ledger that no route takes from any more still has orders to decide.
func (g *gate) api(c *config.Config, log *slog.Logger) http.Handler {
	api := admin.API{
		Token: string(g.config.Admin.Token), ViewerToken: string(g.config.Admin.ViewerToken),
		Door: g.door, Trail: g.trail, Log: log,
		Gate: g, Helm: g.helm, Watch: g.watch, TopKeys: topKeys(g.proxy.Counters(), g.now), Why: g.why,
		Dashboard: g.page, Preflight: g.checked,
	}
	if g.stock != nil && (hasGate(c, "check") || !reserves(c)) {
		api.Store = g.store // no route reads a layout's key otherwise
	}
	if g.orders != nil {
		api.Ledgers, api.LayoutFirst = g.ledgers(), !reserves(c)
	}
	if g.board != nil {
		api.Sales = g.sales()
	}
	return api.Handler()
}

// ledgers are those of this gate; nil = it keeps none.
func (g *gate) ledgers() admin.Ledgers {
	if g.orders == nil {
		return nil
	}
	return ledgersOf(g.config, g.orders.store, g.orders.desk.Load)
}

// topKeys lists the keys that limits reject most.
func topKeys(counters *metrics.Counters, now func() int64) func(n int) []metrics.TopKey {
	return func(n int) []metrics.TopKey { return counters.TopKeys(n, now()) }
}
