package sandbox

import (
	"testing"
	"time"

	"sluice/config"
	"sluice/internal/loadtest"
)

// Advice is about the limits that the gate of the load test has: what is not enforced rejects no request.
func TestAdviceIsAboutTheLimitsThatBind(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.Config)
		want   func(*loadtest.Limits)
	}{
		"as they are": {func(*config.Config) {}, func(*loadtest.Limits) {}},
		"windows of a fleet": {
			func(c *config.Config) { c.Limits.Window.Scope, c.Fleet.Instances = "fleet", 2 },
			func(l *loadtest.Limits) { l.Max, l.MaxPerSKU = 50, 2 },
		},
		"windows that only count": {
			func(c *config.Config) { c.Limits.ObserveOnly = []string{"window"} },
			func(l *loadtest.Limits) { l.Max, l.MaxPerSKU = 0, 0 },
		},
		"places that only count": {
			func(c *config.Config) { c.Limits.ObserveOnly = []string{"concurrency"} },
			func(l *loadtest.Limits) { l.InFlight, l.InFlightKey = 0, "" },
		},
		"all that only counts": {
			func(c *config.Config) { c.Mode = "observe" },
			func(l *loadtest.Limits) { l.Max, l.MaxPerSKU, l.InFlight, l.InFlightKey = 0, 0, 0, "" },
		},
		"places of the route": {
			func(c *config.Config) { c.Routes[0].MaxInFlight = 5 },
			func(l *loadtest.Limits) { l.InFlight, l.InFlightKey = 5, `max_in_flight of route "order"` },
		},
	} {
		conf := config.Default()
		conf.Routes = []config.Route{{Name: "order", Match: "POST /order/{sku}", Gate: "reserve", SKU: "$path_sku"}}
		conf.Limits.Window.Max, conf.Limits.Window.MaxPerSKU, conf.Limits.Concurrency.MaxInFlight = 100, 3, 40
		conf.Server.TrustedProxies = []string{"10.0.0.0/8", "127.0.0.0/8"}
		want := loadtest.Limits{
			Window: 10 * time.Millisecond, Max: 100, MaxPerSKU: 3, InFlightKey: "limits.concurrency.max_in_flight", InFlight: 40,
			Queue:        512,
			PerUnit:      2,
			QueueTimeout: 200 * time.Millisecond, MaxOpen: conf.Limits.Connection.MaxConnections, Trusts: true,
			ResponseTimeout: 5 * time.Second, Reserves: true,
		}
		c.change(conf)
		c.want(&want)
		if got := (&sandbox{Route: "order"}).limits(conf); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
