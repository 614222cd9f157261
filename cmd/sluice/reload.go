package main

import (
	"crypto/sha256"
	"log/slog"
	"os"
	"os/signal"
	"strings"
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
	"limits.connection", "limits.window.max", "limits.window.max_per_sku", "limits.concurrency",
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
	if g.stock == nil && stocked(next) {
		return nil, nil, next.Errorf("route", "a gate that looks at stock needs stock.source, which only a restart can change")
	}
	if g.orders == nil && g.driver == nil && hasGate(next, "reserve") {
		return nil, nil, next.Errorf("route", "gate \"reserve\" needs a ledger or a driver, which only a restart can open")
	}
	successor, err := proxy.New(g.options(next, g.proxy))
	if err != nil {
		return nil, nil, err
	}
	if err := g.shop.Replace(next.Upstream.Targets); err != nil {
		return nil, nil, next.Errorf("upstream.targets", "%v", err)
	}
	limits := next.Limits
	g.windows.SetCaps(limits.Window.Max, limits.Window.MaxPerSKU)
	g.places.SetMax(limits.Concurrency.MaxInFlight, limits.Concurrency.MaxQueue)
	g.conns.SetMax(limits.Connection.MaxOpen, limits.Connection.MaxOpenPerIP)
	g.proxy = successor
	g.server.Replace(successor)
	return changed, waits, nil
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
	g.log.Info("configuration reloaded", "changed", changed)
	if len(waits) > 0 {
		g.log.Warn("these keys change only with a restart, and stay as they were", "keys", waits)
	}
	return next
}

// lookEveryFile is how often the file is looked at: notification fails on bind mounts and ConfigMaps.
const lookEveryFile = 2 * time.Second

// changes tells when to read file again: at SIGHUP, and when its content has changed. It ends with stop.
func changes(file string, watch bool, log *slog.Logger, stop <-chan struct{}) <-chan struct{} {
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
		seen := sumOf(file)
		for {
			select {
			case <-stop:
				return
			case <-hangup:
				if file == "" {
					log.Warn("SIGHUP: there is no configuration file to read again")
					continue
				}
				seen = sumOf(file)
				tell()
			case <-tick.C:
				if sum := sumOf(file); watch && file != "" && sum != seen && sum != (fingerprint{}) {
					seen = sum
					tell()
				}
			}
		}
	}()
	return again
}

type fingerprint [sha256.Size]byte

// sumOf is the fingerprint of a file's content; zero when it cannot be read, as in the moment in which it is replaced.
func sumOf(file string) fingerprint {
	text, err := os.ReadFile(file)
	if err != nil {
		return fingerprint{}
	}
	return sha256.Sum256(text)
}
