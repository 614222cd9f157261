package gateway

import (
	"fmt"
	"slices"
	"strings"

	"sluice/config"
	"sluice/gateway/limits"
	"sluice/gateway/stores"
	"sluice/proxy"
	"sluice/proxy/reject"
)

// live are the keys and tables that a reload changes, besides those of the limits. A file that changes another one is
// rejected as a whole: it holds from the next start on.
var live = []string{
	"mode", "route", "responses", "auth", "sale", "stock.on_error", "stock.unknown_sku",
	"stock.poll_interval", "stock.sold_out_ttl", "stock.reserve.confirm_on", "stock.reserve.release_on",
	"stock.reserve.confirm_json", "stock.max_in_flight_per_unit", "stock.layout", "stock.detail", "stock.low_stock",
	"stock.sold_out_on",
	"server.trusted_proxies", "server.client_ip_header", "server.max_body_size", "server.body_memory",
	"server.request_id_header",
	"server.shutdown_delay", "server.shutdown_timeout",
	"queue.max_in_flight", "queue.rate", "queue.max_order", "queue.deliver_within", "queue.attempts", "queue.redeliver",
	"limits.bypass", "limits.deny", "limits.observe_only", "fleet.instances",
	"access_log", "cache", "upstream",
}

func ChangesOnReload(key string) bool {
	for _, l := range live {
		if key == l || strings.HasPrefix(key, l+".") || strings.HasPrefix(key, l+"[") {
			return true
		}
	}
	return limits.ChangesOnReload(key)
}

// restartReason says why a table changes only with a restart.
type restartReason struct{ table, why string }

// restarts are the reasons; the first one whose table a key begins with is its own.
var restarts = []restartReason{
	{"server.", "listeners and their connections are opened at the start"},
	{"stock.", "what reads and keeps stock is opened at the start"},
	{"decide", "its listener is opened at the start"},
	{"admin.", "its listener and tokens are set up at the start"},
	{"ops.", "its listener is opened at the start"},
	{"", "it is read at the start alone"},
}

// whyRestart tells why a key changes only with a restart.
func whyRestart(key string) string {
	at := slices.IndexFunc(restarts, func(r restartReason) bool { return strings.HasPrefix(key, r.table) })
	return restarts[at].why
}

// otherStock are the routes whose gate changes from check to reserve, or back: they sell from another stock from then
// on.
func otherStock(now, next *config.Config) (routes []string) {
	for _, r := range next.Routes {
		before := slices.IndexFunc(now.Routes, func(b config.Route) bool { return b.Name == r.Name })
		if before < 0 {
			continue
		}
		if gates := []string{now.Routes[before].Gate, r.Gate}; gates[0] != gates[1] &&
			slices.Contains(gates, "check") && slices.Contains(gates, "reserve") {
			routes = append(routes, r.Name)
		}
	}
	return routes
}

// rejectRestarts rejects a file that changes keys which only a restart can change. It names all of them.
func rejectRestarts(began, next *config.Config) error {
	return next.ErrorsOf(slices.DeleteFunc(config.Diff(began, next), ChangesOnReload), func(key string) string {
		return fmt.Sprintf("changes only with a restart (%s): restart the gateway, or write the former value",
			whyRestart(key))
	})
}

// change has the gate run next from now on, all of it or nothing. Connections, counts and what is in flight go on; so
// do windows whose size, max_delay and warm_up stay.
func (g *Gateway) change(now, next *config.Config) error {
	if g.Stock == nil && next.ReadsStock() {
		return next.Errorf("route",
			"a gateway that looks at stock needs stock.source, which only a restart can change")
	}
	if g.Orders == nil && next.HasGate("reserve") {
		return next.Errorf("route", "gate \"reserve\" needs a ledger, which only a restart can open")
	}
	if err := g.openQueue(next); err != nil {
		return err
	}
	useStock, err := g.prepareStock(now, next)
	if err != nil {
		return err
	}
	ask, use := g.limits.Prepare(next)
	successor, err := proxy.New(g.proxyOptions(next, ask, g.proxy))
	if err != nil {
		return err
	}
	pages, err := reject.NewRoomPages(responses(&next.Responses))
	if err != nil {
		return err
	}
	if err := g.fleet.use(next); err != nil { // an instance that has joined without need does no harm
		return err
	}
	if err := g.access.Set(accessSettings(next)); err != nil {
		return next.Errorf("access_log.output", "%v", err)
	}
	if err := g.shop.Reconfigure(upstreamOptions(next)); err != nil {
		_ = g.access.Set(accessSettings(now)) // what was open a moment ago
		return next.Errorf("upstream.targets", "%v", err)
	}
	if err := g.rooms.Use(next, pages); err != nil {
		_ = g.access.Set(accessSettings(now))
		_ = g.shop.Reconfigure(upstreamOptions(now))
		return err
	}
	use() // from here on nothing fails
	g.fleet.countRates()
	useStock()
	g.queue.Load().Use(&next.Queue, g.settlement(next))
	g.schedule.Use(stores.SalesOf(next))
	g.opener.Use(next)
	if g.writer != nil {
		g.writer.Use(g.writesBack(next))
	}
	g.demand.Use(stores.LabelledSKUs(next), g.looksAtShopStock(next))
	g.cache.Adjust(cacheOptions(next))
	g.proxy = successor
	g.Server.Replace(successor)
	g.control.use(g.api(next, g.log))
	return nil
}

// changedKeys are the keys that a reload changes, with those of which only a file differs that they name: lists of
// addresses, pages, keys and certificates.
func changedKeys(now, next *config.Config) (changed []string) {
	for _, key := range config.Diff(now, next) {
		if ChangesOnReload(key) {
			changed = append(changed, key)
		}
	}
	a, b := &now.Limits, &next.Limits
	if slices.Equal(a.Bypass, b.Bypass) && !slices.Equal(a.Bypassed, b.Bypassed) {
		changed = append(changed, "limits.bypass")
	}
	if slices.Equal(a.Deny, b.Deny) && !slices.Equal(a.Denied, b.Denied) {
		changed = append(changed, "limits.deny")
	}
	if now.Upstream.TLS.CAFile == next.Upstream.TLS.CAFile && now.Upstream.TLS.CA != next.Upstream.TLS.CA {
		changed = append(changed, "upstream.tls.ca_file")
	}
	if now.Responses.TemplateDir == next.Responses.TemplateDir && !now.Responses.SamePages(&next.Responses) {
		changed = append(changed, "responses.template_dir")
	}
	return append(changed, now.Auth.ChangedKeys(&next.Auth)...)
}
