package config

import (
	"maps"
	"math"
	"net/netip"
	"reflect"
	"slices"
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
	InFlight    []InFlight  `toml:"in_flight"`
	ObserveOnly []string    `toml:"observe_only"` // names of limits that reject nothing; see Enforced

	Bypassed, Denied []netip.Prefix // what the lists and their files hold
}

// Connection bounds one connection, and how many there are.
type Connection struct {
	RequestRate    PerSecond `toml:"request_rate"`
	RequestBurst   int       `toml:"request_burst" unit:"requests" range:"1 to most"`
	MaxConnections int       `toml:"max_connections" unit:"connections" range:"1 to most"`
	// 1 to MaxConnections
	MaxConnectionsPerIP int `toml:"max_connections_per_ip" unit:"connections" range:"1 to most"`
	// on one connection; 0 = no cap
	MaxRequests int `toml:"max_requests" unit:"requests" range:"0 to most"`
}

// Window is what may be admitted in one window, of this instance or of all.
type Window struct {
	Size time.Duration `toml:"size" range:"1ms to 1s"`
	Max  int           `toml:"max" unit:"requests" range:"0 to 67108863"` // 0 = no cap
	// 0 = no cap; at most Max where both cap
	MaxPerSKU int `toml:"max_per_sku" unit:"requests" range:"0 to 65535"`
	// 0, or 1 to 63 times Size; 0 = reject at once
	MaxDelay time.Duration `toml:"max_delay"`
	WarmUp   time.Duration `toml:"warm_up" range:"0s to 10m"` // 0 = the caps hold in full at once
	Scope    string        `toml:"scope" words:"instance fleet"`
}

// Concurrency bounds the requests inside the shop.
type Concurrency struct {
	MaxInFlight  int           `toml:"max_in_flight" unit:"requests" range:"1 to most"`
	MaxQueue     int           `toml:"max_queue" unit:"requests" range:"0 to most"` // 0 = no request waits
	QueueTimeout time.Duration `toml:"queue_timeout"`                               // above 0 where there is a queue
	Adaptive     bool          `toml:"adaptive"`                                    // find the limit, at most MaxInFlight

	Scope string `toml:"scope" words:"instance fleet"` // of MaxInFlight
	// a condition like "$jwt_level=vip": its requests go first in the queue; its syntax is the proxy's
	Priority string `toml:"priority"`
}

// Rate bounds the requests of one key.
type Rate struct {
	Name       string        `toml:"name"` // unique; of letters, digits and . _ -
	Key        string        `toml:"key"`  // a template of request variables
	Rate       PerSecond     `toml:"rate"`
	Burst      int           `toml:"burst" unit:"requests"`       // at least 1
	MaxDelay   time.Duration `toml:"max_delay" range:"0s to 10s"` // 0 = what exceeds the burst is rejected at once
	IPv4Prefix int           `toml:"ipv4_prefix" unit:"bits" range:"1 to 32"`
	IPv6Prefix int           `toml:"ipv6_prefix" unit:"bits" range:"1 to 128"`
	MaxKeys    int           `toml:"max_keys" unit:"keys" range:"1 to 100000000"` // 16 bytes each
	Routes     []string      `toml:"routes"`                                      // names; empty = all but `pass`

	Scope     string            `toml:"scope" words:"instance fleet"`
	Overrides map[string]string `toml:"overrides"` // rates by pattern of the key's value, or "off"; see RateOverrides
}

func (l *Rate) preset() {
	*l = Rate{Key: "$remote_addr", IPv4Prefix: 32, IPv6Prefix: 64, MaxKeys: 1_000_000, Routes: []string{},
		Overrides: map[string]string{}, Scope: "instance"}
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
			MaxInFlight: 256, MaxQueue: 512, QueueTimeout: 200 * time.Millisecond, Scope: "instance",
		},
	}
}

func (l *Limits) check(r *report, routes []string) {
	l.Connection.check(r)
	l.Window.check(r)
	l.Concurrency.check(r)
	for i := range l.Rates {
		l.Rates[i].check(r, Element("limits.rate", i), routes)
	}
	for i := range l.InFlight {
		l.InFlight[i].check(r, Element("limits.in_flight", i), routes)
	}
	names := l.KeyedNames()
	at := func(i int) string {
		if i < len(l.Rates) {
			return Element("limits.rate", i) + ".name"
		}
		return Element("limits.in_flight", i-len(l.Rates)) + ".name"
	}
	r.Unique(names, at)
	l.checkObserveOnly(r, names, at)
}

func (c *Connection) check(r *report) {
	atMost(r, "limits.connection.max_connections_per_ip", c.MaxConnectionsPerIP,
		"limits.connection.max_connections", c.MaxConnections)
}

func (w *Window) check(r *report) {
	w.checkDelay(r)
	if w.Max > 0 {
		atMost(r, "limits.window.max_per_sku", w.MaxPerSKU, "limits.window.max", w.Max)
	}
}

// maxDelay bounds Window.MaxDelay, in windows.
const maxDelay = 63

// derive makes MaxDelay one window where the file does not say it.
func (w *Window) derive(in keyLines) {
	if _, has := in["limits.window.max_delay"]; !has {
		w.MaxDelay = w.Size
	}
}

// DelayWindows is MaxDelay in whole windows.
func (w *Window) DelayWindows() int { return int(w.MaxDelay / w.Size) }

func (w *Window) checkDelay(r *report) {
	const key = "limits.window.max_delay"
	r.Rule(key, "0s, or 1 to 63 times size")
	if w.MaxDelay > 0 && w.MaxDelay < w.Size {
		r.Fail(key, "%v is less than one window (%v): no request could wait; write \"0s\", or at least limits.window.size",
			w.MaxDelay, w.Size)
	}
	between(r, key, w.MaxDelay, 0, maxDelay*max(w.Size, 0))
}

func (c *Concurrency) check(r *report) {
	if c.MaxQueue > 0 {
		r.Positive("limits.concurrency.queue_timeout", c.QueueTimeout)
	}
	r.NotNegative("limits.concurrency.queue_timeout", c.QueueTimeout)
}

// MinInFlight is where an adaptive limit starts, and what it never falls below.
func (c *Concurrency) MinInFlight() int { return min(8, c.MaxInFlight) }

func (l *Rate) check(r *report, at string, routes []string) {
	if l.Rate == 0 {
		r.Fail(at+".rate", "is missing; write it like \"20/s\"")
	}
	if l.Burst == 0 {
		r.Fail(at+".burst", "is missing or 0; write how many requests of one key may come at once, like 20")
	} else {
		between(r, at+".burst", l.Burst, 1, most)
	}
	l.checkOverrides(r, at+".overrides")
	checkKeyed(r, at, l.Name, l.Routes, routes)
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

// Enforced reports whether a limit rejects: "window", or the name of a [[limits.rate]] or [[limits.in_flight]].
func (l *Limits) Enforced(name string) bool { return !slices.Contains(l.ObserveOnly, name) }

func (l *Limits) checkObserveOnly(r *report, keyed []string, at func(i int) string) {
	builtIn := limitNames()
	for i, name := range keyed {
		if slices.Contains(builtIn, name) {
			r.Fail(at(i), "%q is the name of [limits.%s]; write another one", name, name)
		}
	}
	known := slices.Concat(builtIn, keyed)
	for i, name := range l.ObserveOnly {
		r.OneOf(Element("limits.observe_only", i), name, known...)
	}
	r.Unique(l.ObserveOnly, func(i int) string { return Element("limits.observe_only", i) })
}

// notLabel tells what may not stand in a name that is shown everywhere.
func notLabel(c rune) bool {
	return !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.ContainsRune("._-", c))
}

// RateOverride is another rate for the keys whose value matches a pattern.
type RateOverride struct {
	Pattern string
	Rate    PerSecond // 0 = off: they are not counted
	Burst   int       // takes as long to earn as that of the rate, and is at least 1
}

// RateOverrides are the overrides of l, by their patterns.
func (l *Rate) RateOverrides() (all []RateOverride) {
	for _, pattern := range slices.Sorted(maps.Keys(l.Overrides)) {
		o := RateOverride{Pattern: pattern}
		if rate, err := parseRate(l.Overrides[pattern]); err == nil && l.Rate > 0 {
			o.Rate = rate
			o.Burst = int(min(max(math.Ceil(float64(l.Burst)*float64(rate/l.Rate)-1e-9), 1), most))
		}
		all = append(all, o)
	}
	return all
}

// maxRateOverrides bounds what each request of a rate is compared with.
const maxRateOverrides = 32

func (l *Rate) checkOverrides(r *report, at string) {
	r.Rule(at, `patterns with a rate or "off"`)
	if len(l.Overrides) > maxRateOverrides {
		r.Fail(at, "%d patterns are too many; write at most %d", len(l.Overrides), maxRateOverrides)
	}
	for _, pattern := range slices.Sorted(maps.Keys(l.Overrides)) {
		if value := l.Overrides[pattern]; value != "off" {
			if _, err := parseRate(value); err != nil {
				r.Fail(joinKey(at, pattern), "%v, or \"off\"", err)
			}
		}
	}
}

// InFlight bounds the requests of one key that are in the upstream at the same time.
type InFlight struct {
	Name   string   `toml:"name"` // unique; of letters, digits and . _ -
	Key    string   `toml:"key"`  // a template of request variables
	Max    int      `toml:"max" unit:"requests" range:"1 to 65535"`
	Routes []string `toml:"routes"` // names; empty = all but `pass`
}

func (l *InFlight) preset() {
	*l = InFlight{Key: "$remote_addr", Routes: []string{}}
}

func (l *InFlight) check(r *report, at string, routes []string) {
	checkKeyed(r, at, l.Name, l.Routes, routes)
}

// checkKeyed checks what the limits of a key have in common: of are the routes of this limit.
func checkKeyed(r *report, at, name string, of, routes []string) {
	if r.Filled(at+".name", name) && strings.ContainsFunc(name, notLabel) {
		r.Fail(at+".name", "%q stands in metrics and headers; write letters, digits and . _ -", name)
	}
	for i, name := range of {
		if !slices.Contains(routes, name) {
			r.Fail(Element(at+".routes", i), "%q is no route; write the name of a [[route]]", name)
		}
	}
}

// KeyedNames are the names of all limits of keys: of rates, then of limits in flight.
func (l *Limits) KeyedNames() (names []string) {
	for i := range l.Rates {
		names = append(names, l.Rates[i].Name)
	}
	for i := range l.InFlight {
		names = append(names, l.InFlight[i].Name)
	}
	return names
}
