package app

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/listener"
	"sluice/limiter"
	"sluice/proxy"
	"sluice/proxy/reject"
)

// limitRow is one row of the table of limits: what [limits.NAME] of the configuration has to do with. The rows decide
// what is only observed, what a reload or an operator may change, and which numbers the access log, explain, the API
// and the dashboard show. A new limit is one row: docs/adding-a-limit.md.
type limitRow struct {
	name    string   // of its table
	numbers []string // keys that are shown with their values
	others  []string // keys that are not shown, and that an operator may override as well
	filed   []string // of numbers: keys that the file alone changes

	// bounds are the reasons for which it rejects, and how large it is.
	bounds func(l *config.Limits) map[reject.Reason]string

	// counts are the keyed rates that it counts in, without names; nil = none. What they have counted goes on after a
	// reload.
	counts func(l *config.Limits) []limiter.RateSpec

	// limit gives a Proxy what its checks ask, and changes nothing yet. counted are those of counts.
	limit func(in *limits, c *config.Config, counted []*limiter.RateLimiter, to *proxy.Limiters)

	use func(in *limits, c *config.Config) // puts the numbers of c into force; nil = limit has done it
	now func(in *limits) []admin.Now       // what it counts at the moment; nil = nothing
}

var limitRows = []limitRow{
	{
		name: "connection", numbers: []string{"request_rate", "request_burst", "max_connections", "max_connections_per_ip"},
		others: []string{"max_requests"},
		bounds: func(l *config.Limits) map[reject.Reason]string {
			c := l.Connection
			return map[reject.Reason]string{
				reject.ConnOpen: fmt.Sprintf("max_connections %d", c.MaxConnections),
				reject.IPConns:  fmt.Sprintf("max_connections_per_ip %d", c.MaxConnectionsPerIP),
				reject.ConnRate: fmt.Sprintf("request_rate %.3g/s, request_burst %d", float64(c.RequestRate), c.RequestBurst),
			}
		},
		limit: func(_ *limits, c *config.Config, _ []*limiter.RateLimiter, to *proxy.Limiters) {
			l := c.Limits.Connection
			to.ConnRate = func() proxy.ConnRateLimiter { return limiter.NewConnRate(float64(l.RequestRate), l.RequestBurst) }
		},
		use: func(in *limits, c *config.Config) {
			in.conns.SetMax(in.files.maxOpen(c), c.Limits.Connection.MaxConnectionsPerIP)
		},
		now: func(in *limits) []admin.Now { return []admin.Now{{Name: "open", Value: float64(in.conns.Count())}} },
	},
	{
		name: "window", numbers: []string{"max", "max_per_sku", "size"}, filed: []string{"size"},
		bounds: func(l *config.Limits) map[reject.Reason]string {
			w := l.Window
			return map[reject.Reason]string{reject.Window: fmt.Sprintf("max %d, max_per_sku %d in %s, max_delay %s",
				w.Max, w.MaxPerSKU, w.Size, w.MaxDelay)}
		},
		limit: func(in *limits, c *config.Config, _ []*limiter.RateLimiter, to *proxy.Limiters) {
			to.Windows = in.windows.prepare(c)
		},
		use: func(in *limits, c *config.Config) { in.windows.use(c) },
	},
	{
		name: "concurrency", numbers: []string{"max_in_flight", "max_queue", "queue_timeout"},
		others: []string{"adaptive", "queue_order"},
		bounds: func(l *config.Limits) map[reject.Reason]string {
			c := l.Concurrency
			slots := fmt.Sprintf("max_in_flight %d, max_queue %d", c.MaxInFlight, c.MaxQueue)
			return map[reject.Reason]string{
				reject.Concurrency:  slots,
				reject.QueueTimeout: fmt.Sprintf("%s, queue_timeout %s", slots, c.QueueTimeout),
			}
		},
		limit: func(in *limits, c *config.Config, _ []*limiter.RateLimiter, to *proxy.Limiters) {
			to.Concurrency = in.concurrency.total(c)
		},
		use: func(in *limits, c *config.Config) { in.concurrency.use(c) },
		now: func(in *limits) []admin.Now {
			all := in.concurrency.all
			return []admin.Now{{Name: "in_flight", Value: float64(all.InFlight())}, {Name: "limit", Value: float64(all.Max())},
				{Name: "queue", Value: float64(all.Queued())}}
		},
	},
	{
		name: "rate", counts: rateSpecs, // [[limits.rate]]: each has numbers, bounds and enforce of its own
		limit: func(_ *limits, c *config.Config, counted []*limiter.RateLimiter, to *proxy.Limiters) {
			to.Rates = keyedRates(c)
			for i := range to.Rates {
				to.Rates[i].Limiter, counted = counted[0], counted[1:]
				for j := range to.Rates[i].Overrides {
					if o := &to.Rates[i].Overrides[j]; !o.Off {
						o.Limiter, counted = counted[0], counted[1:]
					}
				}
			}
		},
	},
}

// limits are the limiters in force. A reload changes their numbers, and what they have counted goes on.
type limits struct {
	conns       *limiter.ConnLimiter
	windows     *windows
	concurrency *concurrency
	rates       *limiter.RateLimiters
	files       *descriptors
}

func newLimits(c *config.Config, now func() int64, log *slog.Logger) limits {
	files := &descriptors{allowed: listener.OpenFileLimit(), log: log}
	return limits{
		files: files, conns: limiter.NewConnLimiter(files.maxOpen(c), c.Limits.Connection.MaxConnectionsPerIP),
		windows: newWindows(c), concurrency: newConcurrency(now), rates: limiter.NewRateLimiters(now),
	}
}

// prepare makes what a Proxy of c asks. Nothing is in force before use.
func (in *limits) prepare(c *config.Config) (to proxy.Limiters, use func()) {
	var specs []limiter.RateSpec
	for _, row := range limitRows {
		specs = append(specs, row.specs(c)...)
	}
	counted := in.rates.Prepare(specs)
	next := counted
	for _, row := range limitRows {
		n := len(row.specs(c))
		row.limit(in, c, next[:n], &to)
		next = next[n:]
	}
	return to, func() {
		for _, row := range limitRows {
			if row.use != nil {
				row.use(in, c)
			}
		}
		in.rates.Use(counted)
	}
}

// specs are those of counts with names, by which metrics and a reload know them.
func (row *limitRow) specs(c *config.Config) []limiter.RateSpec {
	if row.counts == nil {
		return nil
	}
	specs := row.counts(&c.Limits)
	for i := range specs {
		if specs[i].Name == "" {
			specs[i].Name = "[limits." + row.name + "]" // brackets: no [[limits.rate]] can have this name
		}
	}
	return specs
}

// reasons are those for which the limit rejects, in their order.
func (row *limitRow) reasons(c *config.Config) []reject.Reason {
	if row.bounds == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(row.bounds(&c.Limits)))
}

// enforced tells whether the limit rejects, rather than count what it would reject.
func (row *limitRow) enforced(c *config.Config) bool {
	return c.Limits.Enforced(row.name)
}

// observeOnly are the reasons of the limits that are only observed.
func observeOnly(c *config.Config) (reasons []reject.Reason) {
	for _, row := range limitRows {
		if of := row.reasons(c); len(of) > 0 && !row.enforced(c) {
			reasons = append(reasons, of...)
		}
	}
	return reasons
}

// bounds say how large each limit is, for the access log and explain.
func bounds(c *config.Config) map[reject.Reason]string {
	all := map[reject.Reason]string{
		reject.DeniedIP:   fmt.Sprintf("limits.deny: %d networks", len(c.Limits.Denied)),
		reject.TooLarge:   fmt.Sprintf("server.max_body_size: %s", c.Server.MaxBodySize),
		reject.Overloaded: fmt.Sprintf("server.body_memory: %s", c.Server.BodyMemory),
		reject.TooSlow:    fmt.Sprintf("server.read_timeout: %s", c.Server.ReadTimeout),
	}
	for _, row := range limitRows {
		if row.bounds == nil {
			continue
		}
		for reason, bound := range row.bounds(&c.Limits) {
			all[reason] = "limits." + row.name + ": " + bound
		}
	}
	return all
}

// liveLimit tells whether a reload changes a key of [limits.NAME].
func liveLimit(key string) bool {
	return slices.ContainsFunc(limitRows, func(row limitRow) bool {
		name, ours := strings.CutPrefix(key, "limits."+row.name)
		return ours && (name == "" || name[0] == '[' || name[0] == '.')
	})
}

// overridableLimits are the keys of limits that an operator may change for a while.
func overridableLimits() (keys []string) {
	for _, row := range limitRows {
		if row.bounds == nil {
			continue
		}
		for _, name := range slices.Concat(row.numbers, row.others) {
			if !slices.Contains(row.filed, name) {
				keys = append(keys, "limits."+row.name+"."+name)
			}
		}
	}
	return keys
}

// Limits implements admin.Gate.
func (g *Gateway) Limits() []admin.Limit {
	h := g.controller
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []admin.Limit
	for _, row := range limitRows {
		if row.bounds != nil {
			all = append(all, h.limit(&row, &g.limits))
		}
	}
	for _, r := range h.running.Limits.Rates {
		l := admin.Limit{Name: r.Name, ObserveOnly: !h.running.Limits.Enforced(r.Name),
			Reasons: []string{reject.Rate.String()}, Now: []admin.Now{}}
		for _, name := range []string{"rate", "burst"} {
			l.Numbers = append(l.Numbers, h.number("limits.rate["+r.Name+"]."+name))
		}
		all = append(all, l)
	}
	for i := range all {
		all[i].ObserveOnly = all[i].ObserveOnly || h.running.Mode == "observe"
	}
	return all
}

// limit is what the API tells of one row.
func (h *controller) limit(row *limitRow, in *limits) admin.Limit {
	l := admin.Limit{Name: row.name, ObserveOnly: !row.enforced(h.running), Now: []admin.Now{}}
	for _, reason := range row.reasons(h.running) {
		l.Reasons = append(l.Reasons, reason.String())
	}
	for _, name := range row.numbers {
		l.Numbers = append(l.Numbers, h.number("limits."+row.name+"."+name))
	}
	if row.now != nil {
		l.Now = row.now(in)
	}
	return l
}

// number is one number of a limit.
func (h *controller) number(key string) admin.Number {
	n := admin.Number{Key: key, InForce: valueAt(h.running, key), Configured: valueAt(h.filed, key)}
	if key == "limits.connection.max_connections" {
		n.InForce = h.g.limits.files.maxOpen(h.running)
	}
	for _, o := range h.overrides {
		if o.Key == key {
			n.Override = o.ID
		}
	}
	return n
}

// rateSpecs are those of [[limits.rate]].
func rateSpecs(l *config.Limits) (specs []limiter.RateSpec) {
	for _, r := range l.Rates {
		spec := limiter.RateSpec{
			Name: r.Name, Of: fmt.Sprintf("%s /%d /%d", r.Key, r.IPv4Prefix, r.IPv6Prefix),
			PerSecond: float64(r.Rate), Burst: r.Burst, MaxDelay: r.MaxDelay, MaxKeys: r.MaxKeys,
		}
		specs = append(specs, spec)
		for _, o := range r.RateOverrides() {
			if o.Rate > 0 {
				spec.Name, spec.PerSecond, spec.Burst = fmt.Sprintf("%s[%s]", r.Name, o.Pattern), float64(o.Rate), o.Burst
				specs = append(specs, spec)
			}
		}
	}
	return specs
}

// keyedRates are c's keyed rates, without anything to count in.
func keyedRates(c *config.Config) (rates []proxy.KeyedRate) {
	for _, r := range c.Limits.Rates {
		rate := proxy.KeyedRate{
			Name: r.Name, Key: r.Key, Routes: r.Routes, IPv4Prefix: r.IPv4Prefix, IPv6Prefix: r.IPv6Prefix,
			Observe: !c.Limits.Enforced(r.Name), Burst: r.Burst, PerSecond: float64(r.Rate), MaxDelay: r.MaxDelay,
		}
		for _, o := range r.RateOverrides() {
			rate.Overrides = append(rate.Overrides, proxy.RateOverride{Pattern: o.Pattern, Off: o.Rate == 0, Burst: o.Burst,
				PerSecond: float64(o.Rate)})
		}
		rates = append(rates, rate)
	}
	return rates
}
