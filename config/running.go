package config

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Admin is where the dashboard and the control API listen.
type Admin struct {
	Listen            string `toml:"listen"` // "" = none
	TokenFile         string `toml:"token_file"`
	Token             Secret // what TokenFile holds; never empty beyond loopback
	ViewerTokenFile   string `toml:"viewer_token_file"`
	ConsumerTokenFile string `toml:"consumer_token_file"`
	ConsumerToken     Secret // what ConsumerTokenFile holds: who has it may take and settle orders of the queue, no more
	ViewerToken       Secret // what ViewerTokenFile holds: who has it may look, and change nothing
}

// Ops is where health and metrics are served.
type Ops struct {
	Listen         string `toml:"listen"` // "" = none
	MetricsMaxSKUs int    `toml:"metrics_max_skus" unit:"SKUs" range:"0 to 1048576"`
}

// Log is the log of what happens to this instance.
type Log struct {
	Level string `toml:"level" words:"debug info warn error"`
}

// AccessLog is the log of requests.
type AccessLog struct {
	Output string `toml:"output"` // "off" "stdout" "file:/path"
	// rejections of each reason; beyond them one in 1000 is logged
	RejectedPerSecond int  `toml:"rejected_per_second" unit:"lines" range:"0 to most"`
	MaskIP            bool `toml:"mask_ip"`
	BufferSize        Size `toml:"buffer_size" range:"0B to 4GiB"` // in memory
}

// check wants the whole file to make sense: each value by itself, then section by section in the order of the
// reference.
func (c *Config) check(r *report) {
	c.checkFields(r)
	c.checkName(r)
	c.Server.check(r, c.Decide)
	c.Upstream.check(r)
	names := c.checkRoutes(r)
	c.Limits.check(r, names)
	c.Auth.check(r, c)
	c.Stock.check(r)
	c.checkQueue(r)
	c.checkSales(r)
	c.checkRooms(r)
	c.checkDecide(r)
	c.Responses.check(r)
	c.checkListeners(r)
	c.checkFleet(r)
	c.AccessLog.check(r)
	c.Traces.check(r)
	c.checkSettle(r)
}

// checkListeners also rejects one address twice, which would only fail when it is opened.
func (c *Config) checkListeners(r *report) {
	keys, addresses := []string{}, []string{}
	for i, address := range c.Server.Listen {
		keys, addresses = append(keys, Element("server.listen", i)), append(addresses, address)
	}
	for i := range c.Decide {
		keys = append(keys, Element("decide", i)+".listen")
		addresses = append(addresses, c.Decide[i].Listen)
	}
	keys, addresses = append(keys, "admin.listen", "ops.listen"), append(addresses, c.Admin.Listen, c.Ops.Listen)
	for i, address := range addresses {
		if strings.HasSuffix(address, ":0") {
			addresses[i] = "" // a free port of the kernel's choice is never the same
		}
	}
	r.Unique(addresses, func(i int) string { return keys[i] })

	if c.Admin.Listen != "" {
		r.Listen("admin.listen", c.Admin.Listen)
		if !isLoopback(c.Admin.Listen) && c.Admin.TokenFile == "" {
			r.Fail("admin.listen", "%q can be reached from other machines; write token_file, or listen on 127.0.0.1",
				c.Admin.Listen)
		}
	}
	if c.Ops.Listen != "" {
		r.Listen("ops.listen", c.Ops.Listen)
	}
}

func (a *AccessLog) check(r *report) {
	if path, ok := strings.CutPrefix(a.Output, "file:"); !ok {
		r.OneOf("access_log.output", a.Output, "off", "stdout", "file:/var/log/sluice/access.log")
	} else if path == "" {
		r.Fail("access_log.output", "%q names no file; write it like \"file:/var/log/sluice/access.log\"", a.Output)
	}
}

// Cache bounds what routes with cache keep of the shop's answers.
type Cache struct {
	Size         Size          `toml:"size" range:"1MiB to 64GiB"`
	StaleIfError time.Duration `toml:"stale_if_error" range:"0s or more"`
}

func defaultCache() Cache {
	return Cache{Size: 64 << 20, StaleIfError: 10 * time.Minute}
}

// aName is the form of a name. It has no colon and no brace, which end it in a key of Redis.
var aName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// checkName wants a name wherever something is kept in Redis under it: a default would be the name of every shop.
func (c *Config) checkName(r *report) {
	what := c.keptInRedis()
	switch {
	case c.Name != "" && !aName.MatchString(c.Name):
		r.Fail("name",
			"%q begins keys in Redis; write 1 to 63 lower-case letters, digits and . _ -, of which the first is "+
				"a letter or a digit", c.Name)
	case c.Name == "" && what != "" && c.lines["fleet.name"] == 0:
		r.Fail("name",
			"is missing: %s in Redis, where shops are told apart by it; write above the first table, the same on "+
				"all instances of this shop: name = \"shop-%.4s\"", what, c.version)
	}
}

// NeedsName reports whether instances share something in Redis.
func (c *Config) NeedsName() bool { return c.keptInRedis() != "" }

// SharesRedis reports whether instances of c have a name in a Redis in common: they are a fleet then.
func (c *Config) SharesRedis() bool {
	return c.Name != "" && (c.Stock.Source == "redis" || c.NeedsName())
}

// keptInRedis says what instances share in Redis; "" = nothing.
func (c *Config) keptInRedis() string {
	fleet := c.Limits.Window.Scope == "fleet" && c.Fleet.Instances == 0 || c.Limits.Concurrency.Scope == "fleet" ||
		slices.ContainsFunc(c.Limits.Rates, func(l Rate) bool { return l.Scope == "fleet" })
	switch {
	case c.Stock.Source == "memory":
		return ""
	case c.HasGate("reserve"):
		return "gate = \"reserve\" keeps orders"
	case len(c.Rooms) > 0:
		return "a [[room]] is kept"
	case fleet:
		return "scope = \"fleet\" counts"
	case c.Stock.Source == "redis" && len(c.Sales) > 0:
		return "the state of a [[sale]] is kept"
	}
	return ""
}

// Fleet is what the instances in front of one shop have in common. It matters where a limit's scope is "fleet", and
// where units that came back to the shop's Redis are tried.
type Fleet struct {
	Instances int `toml:"instances" unit:"instances" range:"0 to 1048576"` // 0 = count heartbeats in Redis
}

func (c *Config) checkFleet(r *report) {
	if c.Limits.Window.Scope == "fleet" && c.Fleet.Instances == 0 && c.Stock.Source == "memory" {
		r.Fail("limits.window.scope", "\"fleet\" counts the instances in Redis, but stock.source is \"memory\"; write "+
			"source = \"redis\", or fleet.instances")
	}
	c.checkFleetScopes(r)
}

// checkFleetScopes wants a Redis for limits that the instances share by their demand.
func (c *Config) checkFleetScopes(r *report) {
	scopes := map[string]string{"limits.concurrency.scope": c.Limits.Concurrency.Scope}
	for i := range c.Limits.Rates {
		scopes[Element("limits.rate", i)+".scope"] = c.Limits.Rates[i].Scope
	}
	for _, key := range slices.Sorted(maps.Keys(scopes)) {
		if scopes[key] == "fleet" && c.Stock.Source == "memory" {
			r.Fail(key, "\"fleet\" divides the limit in Redis, but stock.source is \"memory\"; write source = \"redis\", or "+
				"\"off\" "+
				"where no stock is guarded, and stock.redis")
		}
	}
}

// Traces say where traces of forwarded requests go, and of how many.
type Traces struct {
	Endpoint string `toml:"endpoint"` // of a collector; "" = no traces
	// 0 = only those that a trusted proxy has sampled
	SampleRatio float64 `toml:"sample_ratio" unit:"share" range:"0 to 1"`
}

func (t *Traces) check(r *report) {
	if t.Endpoint == "" {
		return
	}
	if u, err := url.Parse(t.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		r.Fail("traces.endpoint", "%q is no URL of a collector; write it like \"http://127.0.0.1:4318\"", t.Endpoint)
	}
}

// readLesser reads the tokens of those who may do less. Beside no operators' token they would be ones that no caller
// needs: who calls from this machine may change everything then.
func (a *Admin) readLesser(r *report, folder string) {
	for _, one := range []struct {
		key, file string
		token     *Secret
		may       string
	}{{"admin.viewer_token_file", a.ViewerTokenFile, &a.ViewerToken, "viewers"},
		{"admin.consumer_token_file", a.ConsumerTokenFile, &a.ConsumerToken, "consumers"}} {
		*one.token = Secret(r.LongSecret(one.key, folder, one.file))
		switch {
		case one.file == "":
		case a.TokenFile == "":
			r.Fail(one.key, "belongs to token_file, without which no token is asked for; write that too, or drop this")
		case *one.token != "" && *one.token == a.Token:
			r.Fail(one.key, "holds the same as token_file: %s could change everything; write another value into it", one.may)
		case one.token == &a.ConsumerToken && a.ConsumerToken != "" && a.ConsumerToken == a.ViewerToken:
			r.Fail(one.key, "holds the same as viewer_token_file; write another value into it")
		}
	}
}
