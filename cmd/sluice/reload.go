package main

import (
	"crypto/sha256"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/config"
	"sluice/proxy"
)

// live are the keys and tables that a reload changes. All others stay as they were until a restart.
var live = []string{
	"mode", "route", "responses",
	"server.trusted_proxies", "server.client_ip_header", "server.max_body_size", "server.request_id_header",
	"server.shutdown_delay", "server.shutdown_timeout",
	"upstream.targets", "upstream.pass_host",
	"limits.connection", "limits.window.max", "limits.window.max_per_sku", "limits.window.enforce", "limits.concurrency",
	"limits.rate", "limits.bypass", "limits.deny",
	"access_log",
}

func isLive(key string) bool {
	for _, l := range live {
		if key == l || strings.HasPrefix(key, l+".") {
			return true
		}
	}
	return false
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
	rates := g.rates.Prepare(rateSpecs(next))
	successor, err := proxy.New(g.options(next, rates, g.proxy))
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
	limits := next.Limits
	g.windows.SetCaps(limits.Window.Max, limits.Window.MaxPerSKU)
	g.places.SetMax(limits.Concurrency.MaxInFlight, limits.Concurrency.MaxQueue)
	g.conns.SetMax(limits.Connection.MaxOpen, limits.Connection.MaxOpenPerIP)
	g.rates.Use(rates)
	g.proxy = successor
	g.server.Replace(successor)
	return changed, waits, nil
}

// lists names the lists of addresses that differ in a file alone.
func lists(now, next *config.Config) (changed []string) {
	a, b := &now.Limits, &next.Limits
	if slices.Equal(a.Bypass, b.Bypass) && !slices.Equal(a.Bypassed, b.Bypassed) {
		changed = append(changed, "limits.bypass")
	}
	if slices.Equal(a.Deny, b.Deny) && !slices.Equal(a.Denied, b.Denied) {
		changed = append(changed, "limits.deny")
	}
	return changed
}

// reload reads the file again. A bad one changes nothing; now is what runs afterwards.
func (g *gate) reload(now *config.Config, read func() (*config.Config, error)) *config.Config {
	next, err := read()
	var changed, waits []string
	if err == nil {
		changed, waits, err = g.change(now, next)
	}
	if err != nil {
		g.reloaded.Set(0)
		g.log.Error("configuration not reloaded; the running one stays", "err", err)
		return now
	}
	g.reloaded.Set(1)
	g.log.Info("configuration reloaded", "changed", changed, "config", next.Version())
	if len(waits) > 0 {
		g.log.Warn("these keys change only with a restart, and stay as they were", "keys", waits)
	}
	return next
}

// sources are the files that the running configuration was read from; none where no file holds it. A successor that
// failed may have named others: those are read again with the next change of the first.
type sources struct{ files atomic.Pointer[[]string] }

func (s *sources) set(files []string) { s.files.Store(&files) }

func (s *sources) some() bool { return len(*s.files.Load()) > 0 }

// sum is the fingerprint of what they hold; zero when one cannot be read, as in the moment in which it is replaced.
func (s *sources) sum() fingerprint {
	var all []byte
	for _, file := range *s.files.Load() {
		text, err := os.ReadFile(file)
		if err != nil {
			return fingerprint{}
		}
		sum := sha256.Sum256(text)
		all = append(all, sum[:]...)
	}
	return sha256.Sum256(all)
}

// lookEveryFile is how often the files are looked at: notification fails on bind mounts and ConfigMaps.
const lookEveryFile = 2 * time.Second

// changes tells when to read the files again: at SIGHUP, and when their content has changed. It ends with stop.
func changes(from *sources, watch bool, log *slog.Logger, stop <-chan struct{}) <-chan struct{} {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	again := make(chan struct{}, 1)
	tell := func() {
		select {
		case again <- struct{}{}:
		default: // it is going to be read anyway
		}
	}
	go func() {
		defer signal.Stop(hangup)
		tick := time.NewTicker(lookEveryFile)
		defer tick.Stop()
		seen := from.sum()
		for {
			select {
			case <-stop:
				return
			case <-hangup:
				if !from.some() {
					log.Warn("SIGHUP: there is no configuration file to read again")
					continue
				}
				seen = from.sum()
				tell()
			case <-tick.C:
				if sum := from.sum(); watch && from.some() && sum != seen && sum != (fingerprint{}) {
					seen = sum
					tell()
				}
			}
		}
	}()
	return again
}

type fingerprint [sha256.Size]byte
