package config

import (
	"net/netip"
	"reflect"
	"slices"
	"sluice/config/position"
	"sluice/config/report"
	"strings"
	"time"
)

// Limits is how much may pass.
type Limits struct {
	Bypass      []string    `toml:"bypass"` // CIDRs, or "file:/path"; see Bypassed
	Deny        []string    `toml:"deny"`   // likewise; see Denied
	Connection  Connection  `toml:"connection"`
	Window      Window      `toml:"window"`
	Concurrency Concurrency `toml:"concurrency"`
	Rates       []Rate      `toml:"rate"`
	ObserveOnly []string    `toml:"observe_only"` // names of limits that reject nothing; see Enforced

	Bypassed, Denied []netip.Prefix // what the lists and their files hold
}

// Connection bounds one connection, and how many there are.
type Connection struct {
	RequestRate         PerSecond `toml:"request_rate"`
	RequestBurst        int       `toml:"request_burst" unit:"requests"`             // at least 1
	MaxConnections      int       `toml:"max_connections" unit:"connections"`        // at least 1
	MaxConnectionsPerIP int       `toml:"max_connections_per_ip" unit:"connections"` // 1 to MaxConnections
	MaxRequests         int       `toml:"max_requests" unit:"requests"`              // on one connection; 0 = no cap
}

// Window is what may be admitted in one window, of this instance or of all.
type Window struct {
	Size      time.Duration `toml:"size"`                        // 1 ms to 1 s
	Max       int           `toml:"max" unit:"requests"`         // 0 = no cap
	MaxPerSKU int           `toml:"max_per_sku" unit:"requests"` // 0 = no cap; at most Max where both cap
	MaxDelay  time.Duration `toml:"max_delay"`                   // 0, or 1 to 63 times Size; 0 = reject at once
	WarmUp    time.Duration `toml:"warm_up"`                     // 0 to 10 min; 0 = the caps hold in full at once
	Scope     string        `toml:"scope"`                       // "instance" or "fleet"
}

// Concurrency bounds the requests inside the shop.
type Concurrency struct {
	MaxInFlight  int           `toml:"max_in_flight" unit:"requests"` // at least 1
	MaxQueue     int           `toml:"max_queue" unit:"requests"`     // 0 = no request waits
	QueueTimeout time.Duration `toml:"queue_timeout"`                 // above 0 where there is a queue
	QueueOrder   string        `toml:"queue_order"`                   // "fifo" or "lifo"
	Adaptive     bool          `toml:"adaptive"`                      // find the limit, at most MaxInFlight
}

// Rate bounds the requests of one key.
type Rate struct {
	Name       string        `toml:"name"` // unique; of letters, digits and . _ -
	Key        string        `toml:"key"`  // a template of request variables
	Rate       PerSecond     `toml:"rate"`
	Burst      int           `toml:"burst" unit:"requests"`   // at least 1
	MaxDelay   time.Duration `toml:"max_delay"`               // 0 to 10 s; 0 = what exceeds the burst is rejected at once
	IPv4Prefix int           `toml:"ipv4_prefix" unit:"bits"` // 1 to 32
	IPv6Prefix int           `toml:"ipv6_prefix" unit:"bits"` // 1 to 128
	MaxKeys    int           `toml:"max_keys" unit:"keys"`    // 1 to 100 million, 16 bytes each
	Routes     []string      `toml:"routes"`                  // names; empty = all but `pass`
}

func (l *Rate) preset() {
	*l = Rate{Key: "$remote_addr", IPv4Prefix: 32, IPv6Prefix: 64, MaxKeys: 1_000_000, Routes: []string{}}
}

func defaultLimits() Limits {
	return Limits{
		Bypass:      []string{},
		Deny:        []string{},
		ObserveOnly: []string{},
		Connection: Connection{
			RequestRate: 50, RequestBurst: 50, MaxConnections: 50000, MaxConnectionsPerIP: 200,
		},
		Window: Window{Size: 10 * time.Millisecond, MaxPerSKU: 20, MaxDelay: 10 * time.Millisecond, Scope: "instance"},
		Concurrency: Concurrency{
			MaxInFlight: 256, MaxQueue: 512, QueueTimeout: 200 * time.Millisecond, QueueOrder: "fifo",
		},
	}
}

const most = 1 << 30 // of anything that is counted

func (l *Limits) check(r *report.Report, routes []string) {
	l.Connection.check(r)
	l.Window.check(r)
	l.Concurrency.check(r)
	names := make([]string, len(l.Rates))
	for i := range l.Rates {
		names[i] = l.Rates[i].Name
		l.Rates[i].check(r, position.Element("limits.rate", i), routes)
	}
	r.Unique(names, func(i int) string { return position.Element("limits.rate", i) + ".name" })
	l.checkObserveOnly(r, names)
}

func (c *Connection) check(r *report.Report) {
	report.Between(r, "limits.connection.request_burst", c.RequestBurst, 1, most)
	report.Between(r, "limits.connection.max_connections", c.MaxConnections, 1, most)
	report.Between(r, "limits.connection.max_connections_per_ip", c.MaxConnectionsPerIP, 1, most)
	report.Between(r, "limits.connection.max_requests", c.MaxRequests, 0, most)
	report.AtMost(r, "limits.connection.max_connections_per_ip", c.MaxConnectionsPerIP, "limits.connection.max_connections", c.MaxConnections)
}

func (w *Window) check(r *report.Report) {
	report.Between(r, "limits.window.size", w.Size, time.Millisecond, time.Second)
	report.Between(r, "limits.window.max", w.Max, 0, 1<<26-1)
	report.Between(r, "limits.window.max_per_sku", w.MaxPerSKU, 0, 1<<16-1)
	w.checkDelay(r)
	if w.Max > 0 {
		report.AtMost(r, "limits.window.max_per_sku", w.MaxPerSKU, "limits.window.max", w.Max)
	}
	report.Between(r, "limits.window.warm_up", w.WarmUp, 0, 10*time.Minute)
	r.OneOf("limits.window.scope", w.Scope, "instance", "fleet")
}

// maxDelay bounds Window.MaxDelay, in windows.
const maxDelay = 63

// derive makes MaxDelay one window where the file does not say it.
func (w *Window) derive(in position.Lines) {
	if _, has := in["limits.window.max_delay"]; !has {
		w.MaxDelay = w.Size
	}
}

// DelayWindows is MaxDelay in whole windows.
func (w *Window) DelayWindows() int { return int(w.MaxDelay / w.Size) }

func (w *Window) checkDelay(r *report.Report) {
	const key = "limits.window.max_delay"
	r.Rule(key, "0s, or 1 to 63 times size")
	if w.MaxDelay > 0 && w.MaxDelay < w.Size {
		r.Fail(key, "%v is less than one window (%v): no request could wait; write \"0s\", or at least limits.window.size",
			w.MaxDelay, w.Size)
	}
	report.Between(r, key, w.MaxDelay, 0, maxDelay*max(w.Size, 0))
}

func (c *Concurrency) check(r *report.Report) {
	report.Between(r, "limits.concurrency.max_in_flight", c.MaxInFlight, 1, most)
	report.Between(r, "limits.concurrency.max_queue", c.MaxQueue, 0, most)
	if c.MaxQueue > 0 {
		r.Positive("limits.concurrency.queue_timeout", c.QueueTimeout)
	}
	r.NotNegative("limits.concurrency.queue_timeout", c.QueueTimeout)
	r.OneOf("limits.concurrency.queue_order", c.QueueOrder, "fifo", "lifo")
}

// MinInFlight is where an adaptive limit starts, and what it never falls below.
func (c *Concurrency) MinInFlight() int { return min(8, c.MaxInFlight) }

func (l *Rate) check(r *report.Report, at string, routes []string) {
	if r.Filled(at+".name", l.Name) && strings.ContainsFunc(l.Name, notLabel) {
		r.Fail(at+".name", "%q stands in metrics and headers; write letters, digits and . _ -", l.Name)
	}
	if l.Rate == 0 {
		r.Fail(at+".rate", "is missing; write it like \"20/s\"")
	}
	if len(report.VariablesOf(l.Key)) == 0 {
		r.Fail(at+".key", "%q is the same for everybody; write a request variable like \"$remote_addr\"", l.Key)
	}
	report.Between(r, at+".burst", l.Burst, 1, most)
	report.Between(r, at+".max_delay", l.MaxDelay, 0, 10*time.Second)
	report.Between(r, at+".ipv4_prefix", l.IPv4Prefix, 1, 32)
	report.Between(r, at+".ipv6_prefix", l.IPv6Prefix, 1, 128)
	report.Between(r, at+".max_keys", l.MaxKeys, 1, 100_000_000)
	for i, name := range l.Routes {
		if !slices.Contains(routes, name) {
			r.Fail(position.Element(at+".routes", i), "%q is no route; write the name of a [[route]]", name)
		}
	}
}

// limitNames are those of the tables of [limits] that observe_only may name.
func limitNames() (names []string) {
	t := reflect.TypeFor[Limits]()
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("toml"); tag != "" && t.Field(i).Type.Kind() == reflect.Struct {
			names = append(names, tag)
		}
	}
	return names
}

// Enforced reports whether a limit rejects: "window", or the name of a [[limits.rate]].
func (l *Limits) Enforced(name string) bool { return !slices.Contains(l.ObserveOnly, name) }

func (l *Limits) checkObserveOnly(r *report.Report, rates []string) {
	builtIn := limitNames()
	for i, name := range rates {
		if slices.Contains(builtIn, name) {
			r.Fail(position.Element("limits.rate", i)+".name", "%q is the name of [limits.%s]; write another one", name, name)
		}
	}
	known := slices.Concat(builtIn, rates)
	for i, name := range l.ObserveOnly {
		r.OneOf(position.Element("limits.observe_only", i), name, known...)
	}
	r.Unique(l.ObserveOnly, func(i int) string { return position.Element("limits.observe_only", i) })
}

// notLabel tells what may not stand in a name that is shown everywhere.
func notLabel(c rune) bool {
	return !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.ContainsRune("._-", c))
}
