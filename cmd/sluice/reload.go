package main

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/config"
	"sluice/proxy"
)

// live are the keys and tables that a reload changes, besides those of the limits. All others stay as they were until a restart.
var live = []string{
	"mode", "route", "responses", "proof", "sale", "stock.show", "stock.few", "stock.sold_out_on",
	"server.trusted_proxies", "server.client_ip_header", "server.max_body_size", "server.request_id_header",
	"server.shutdown_delay", "server.shutdown_timeout",
	"upstream.targets", "upstream.pass_host",
	"limits.bypass", "limits.deny", "fleet",
	"access_log", "cache",
}

func isLive(key string) bool {
	for _, l := range live {
		if key == l || strings.HasPrefix(key, l+".") || strings.HasPrefix(key, l+"[") {
			return true
		}
	}
	return liveLimit(key)
}

func reloadGauge() prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_config_last_reload_successful", Help: "Whether the last configuration that was read was good: 1, or 0."})
	g.Set(1)
	return g
}

// change has the gate run next from now on, all of it that can change or nothing. Connections, counts, windows, and what is
// in flight go on. waits are the keys that need a restart.
func (g *gate) change(now, next *config.Config) (changed, waits []string, err error) {
	for _, key := range config.Diff(g.config, next) {
		if !isLive(key) {
			waits = append(waits, key)
		}
	}
	for _, key := range config.Diff(now, next) {
		if isLive(key) {
			changed = append(changed, key)
		}
	}
	changed = append(changed, lists(now, next)...)
	if g.stock == nil && stocked(next) {
		return nil, nil, next.Errorf("route", "a gate that looks at stock needs stock.source, which only a restart can change")
	}
	if g.orders == nil && g.driver == nil && hasGate(next, "reserve") {
		return nil, nil, next.Errorf("route", "gate \"reserve\" needs a ledger or a driver, which only a restart can open")
	}
	ask, use := g.limits.prepare(next)
	successor, err := proxy.New(g.options(next, ask, g.proxy))
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
	if err := g.sharing.use(g.config, sharesOf(next)); err != nil {
		return nil, nil, err
	}
	use()
	g.board.Use(schedule(next))
	g.opening.use(next)
	g.cache.Adjust(cacheOptions(next))
	g.proxy = successor
	g.server.Replace(successor)
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
	return append(changed, now.Proof.ChangedKeys(&next.Proof)...)
}
