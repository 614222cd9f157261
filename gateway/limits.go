package gateway

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/admin"
	"sluice/config"
	"sluice/internal/listener"
	"sluice/limiter"
	"sluice/proxy"
	"sluice/proxy/param"
	"sluice/proxy/reject"
)

// limitRow is one row of the table of limits: what [limits.NAME] of the configuration has to do with. The rows decide
// what is only observed, what a reload or an operator may change, and which numbers the access log, explain, the API
// and the dashboard show. A new limit is a row here and one in proxy/checks.go: docs/adding-a-limit.md.
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
	limit func(in *limiters, c *config.Config, counted []*limiter.RateLimiter, to *proxy.Limiters)

	use func(in *limiters, c *config.Config) // puts the numbers of c into force; nil = limit has done it
	now func(in *limiters) []admin.Now       // what it counts at the moment; nil = nothing
}

// orOff is a number of which 0 means that there is no such limit.
func orOff(n int) string {
	if n == 0 {
		return "off"
	}
	return strconv.Itoa(n)
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
		limit: func(_ *limiters, c *config.Config, _ []*limiter.RateLimiter, to *proxy.Limiters) {
			l := c.Limits.Connection
			to.ConnRate = func() proxy.ConnRateLimiter { return limiter.NewConnRate(float64(l.RequestRate), l.RequestBurst) }
		},
		use: func(in *limiters, c *config.Config) {
			in.conns.SetMax(in.files.maxOpen(c), c.Limits.Connection.MaxConnectionsPerIP)
		},
		now: func(in *limiters) []admin.Now { return []admin.Now{{Name: "open", Value: float64(in.conns.Count())}} },
	},
	{
		name: "window", numbers: []string{"max", "max_per_sku", "size"}, filed: []string{"size"},
		bounds: func(l *config.Limits) map[reject.Reason]string {
			w := l.Window
			return map[reject.Reason]string{reject.Window: fmt.Sprintf("max %s, max_per_sku %s in %s, max_delay %s",
				orOff(w.Max), orOff(w.MaxPerSKU), w.Size, w.MaxDelay)}
		},
		limit: func(in *limiters, c *config.Config, _ []*limiter.RateLimiter, to *proxy.Limiters) {
			to.Windows = in.windows.prepare(c)
		},
		use: func(in *limiters, c *config.Config) { in.windows.use(c) },
	},
	{
		name: "concurrency", numbers: []string{"max_in_flight", "max_queue", "queue_timeout"},
		others: []string{"adaptive"},
		bounds: func(l *config.Limits) map[reject.Reason]string {
			c := l.Concurrency
			slots := fmt.Sprintf("max_in_flight %d, max_queue %d", c.MaxInFlight, c.MaxQueue)
			if c.Scope == "fleet" {
				slots = "of the fleet: " + slots
			}
			if c.Priority != "" {
				slots += ", priority " + c.Priority
			}
			return map[reject.Reason]string{
				reject.Concurrency:  slots,
				reject.QueueTimeout: fmt.Sprintf("%s, queue_timeout %s", slots, c.QueueTimeout),
			}
		},
		limit: func(in *limiters, c *config.Config, _ []*limiter.RateLimiter, to *proxy.Limiters) {
			to.Concurrency = in.concurrency.total(c)
			to.Priority, _ = param.CompilePriority(c.Limits.Concurrency.Priority) // gateway.Validate tells the error
		},
		use: func(in *limiters, c *config.Config) { in.concurrency.use(c) },
		now: func(in *limiters) []admin.Now {
			all := in.concurrency.all
			return []admin.Now{{Name: "in_flight", Value: float64(all.InFlight())}, {Name: "limit", Value: float64(all.Max())},
				{Name: "queue", Value: float64(all.Queued())}}
		},
	},
	{
		name: "rate", counts: rateSpecs, // [[limits.rate]]: each has numbers, bounds and enforce of its own
		limit: func(_ *limiters, c *config.Config, counted []*limiter.RateLimiter, to *proxy.Limiters) {
			to.Rates = keyedRates(c)
			countIn(to.Rates, counted)
		},
	},
	{
		name: "in_flight", // [[limits.in_flight]]: as with rates
		limit: func(in *limiters, c *config.Config, _ []*limiter.RateLimiter, to *proxy.Limiters) {
			to.InFlight = in.inFlight.prepare(c)
		},
		use: func(in *limiters, _ *config.Config) { in.inFlight.apply() },
	},
}

// limiters are the limiters in force. A reload changes their numbers, and what they have counted goes on. Windows of
// another size, max_delay or warm_up start anew, and so do rates with another name, key or max_keys.
type limiters struct {
	conns       *limiter.ConnLimiter
	windows     *windows
	concurrency *concurrency
	rates       *limiter.RateLimiters
	inFlight    inFlightLimiters
	part        fleetPart
	now         func() int64
	files       *descriptors
}

// newLimiters makes the limiters of c. now is their clock, in nanoseconds.
func newLimiters(c *config.Config, now func() int64, log *slog.Logger) *limiters {
	files := &descriptors{allowed: listener.OpenFileLimit(), log: log}
	return &limiters{
		files: files, conns: limiter.NewConnLimiter(files.maxOpen(c), c.Limits.Connection.MaxConnectionsPerIP),
		windows: newWindows(c), concurrency: newConcurrency(now), rates: limiter.NewRateLimiters(now),
		now: now,
	}
}

// Prepare makes what a Proxy of c asks. Nothing is in force before use.
func (in *limiters) Prepare(c *config.Config) (to proxy.Limiters, use func()) {
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
		in.use(c)
	}
}

// InFlight is how many gated requests the shop has at the moment.
func (in *limiters) InFlight() int { return in.concurrency.all.InFlight() }

// Collectors are the metrics of the limiters.
func (in *limiters) Collectors() []prometheus.Collector {
	return []prometheus.Collector{in.windows, in.concurrency, in.conns, in.rates, &in.inFlight.limiters}
}

// DashboardCollectors are those of Collectors that the dashboard reads: without those of every route and rate.
func (in *limiters) DashboardCollectors() []prometheus.Collector {
	return []prometheus.Collector{in.windows, in.concurrency.all, in.conns}
}

// Close ends what New and use have started.
func (in *limiters) Close() { in.concurrency.close() }

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

// observeOnly are the reasons of the limits that are only observed.
func observeOnly(c *config.Config) (reasons []reject.Reason) {
	for _, row := range limitRows {
		if of := row.reasons(c); len(of) > 0 && !c.Limits.Enforced(row.name) {
			reasons = append(reasons, of...)
		}
	}
	return reasons
}

// limitBounds say how large each limit is, for the access log and explain.
func limitBounds(c *config.Config) map[reject.Reason]string {
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

// Show tells the API of every limit of c. number is one number of a limit, by its key.
func (in *limiters) Show(c *config.Config, number func(key string) admin.Number) (all []admin.Limit) {
	for _, row := range limitRows {
		if row.bounds != nil {
			all = append(all, in.show(&row, c, number))
		}
	}
	return append(all, in.showKeyed(c, number)...)
}

// show is what the API tells of one row.
func (in *limiters) show(row *limitRow, c *config.Config, number func(key string) admin.Number) admin.Limit {
	l := admin.Limit{Name: row.name, ObserveOnly: !c.Limits.Enforced(row.name), Now: []admin.Now{}}
	for _, reason := range row.reasons(c) {
		l.Reasons = append(l.Reasons, reason.String())
	}
	for _, name := range row.numbers {
		n := number("limits." + row.name + "." + name)
		if n.Key == "limits.connection.max_connections" {
			n.InForce = in.files.maxOpen(c)
		}
		l.Numbers = append(l.Numbers, n)
	}
	if row.now != nil {
		l.Now = row.now(in)
	}
	return l
}
