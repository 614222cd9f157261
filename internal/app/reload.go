package app

import (
	"slices"
	"strings"

	"sluice/config"
	"sluice/internal/app/stores"
	"sluice/proxy"
)

// live are the keys and tables that a reload changes, besides those of the limits. All others stay as they were until a
// restart.
var live = []string{
	"mode", "route", "responses", "auth", "sale", "stock.detail", "stock.low_stock", "stock.sold_out_on",
	"server.trusted_proxies", "server.client_ip_header", "server.max_body_size", "server.body_memory",
	"server.request_id_header",
	"server.shutdown_delay", "server.shutdown_timeout",
	"upstream.targets", "upstream.pass_host",
	"limits.bypass", "limits.deny", "limits.observe_only", "fleet",
	"access_log", "cache",
}

func ChangesOnReload(key string) bool {
	for _, l := range live {
		if key == l || strings.HasPrefix(key, l+".") || strings.HasPrefix(key, l+"[") {
			return true
		}
	}
	return liveLimit(key)
}

// change has the gate run next from now on, all of it that can change or nothing. Connections, counts, windows, and
// what is in flight go on. waits are the keys that need a restart.
func (g *Gateway) change(now, next *config.Config) (changed, waits []string, err error) {
	for _, key := range config.Diff(g.Config, next) {
		if !ChangesOnReload(key) {
			waits = append(waits, key)
		}
	}
	for _, key := range config.Diff(now, next) {
		if ChangesOnReload(key) {
			changed = append(changed, key)
		}
	}
	changed = append(changed, lists(now, next)...)
	if g.Stock == nil && next.ReadsStock() {
		return nil, nil, next.Errorf("route",
			"a gate that looks at stock needs stock.source, which only a restart can change")
	}
	if g.Orders == nil && g.script == nil && next.HasGate("reserve") {
		return nil, nil, next.Errorf("route", "gate \"reserve\" needs a ledger or a script, which only a restart can open")
	}
	ask, use := g.limits.prepare(next)
	successor, err := proxy.New(g.proxyOptions(next, ask, g.proxy))
	if err != nil {
		return nil, nil, err
	}
	if err := g.access.Set(accessSettings(next)); err != nil {
		return nil, nil, next.Errorf("access_log.output", "%v", err)
	}
	if err := g.shop.Replace(next.Upstream.Targets); err != nil {
		_ = g.access.Set(accessSettings(now)) // what was open a moment ago
		return nil, nil, next.Errorf("upstream.targets", "%v", err)
	}
	if err := g.share.use(g.Config, sharesOf(next)); err != nil {
		return nil, nil, err
	}
	use()
	g.schedule.Use(stores.SalesOf(next))
	g.opener.use(next)
	g.cache.Adjust(cacheOptions(next))
	g.proxy = successor
	g.Server.Replace(successor)
	g.control.use(g.api(next, g.log))
	return changed, waits, nil
}

// lists names the lists of addresses, the pages and the keys that differ in a file alone.
func lists(now, next *config.Config) (changed []string) {
	a, b := &now.Limits, &next.Limits
	if slices.Equal(a.Bypass, b.Bypass) && !slices.Equal(a.Bypassed, b.Bypassed) {
		changed = append(changed, "limits.bypass")
	}
	if slices.Equal(a.Deny, b.Deny) && !slices.Equal(a.Denied, b.Denied) {
		changed = append(changed, "limits.deny")
	}
	if now.Responses.TemplateDir == next.Responses.TemplateDir && !now.Responses.SamePages(&next.Responses) {
		changed = append(changed, "responses.template_dir")
	}
	return append(changed, now.Auth.ChangedKeys(&next.Auth)...)
}
