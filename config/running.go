package config

import "strings"

// Admin is where the dashboard and the control API listen.
type Admin struct {
	Listen          string `toml:"listen"` // "" = none
	TokenFile       string `toml:"token_file"`
	Token           Secret // what TokenFile holds; never empty beyond loopback
	ViewerTokenFile string `toml:"viewer_token_file"`
	ViewerToken     Secret // what ViewerTokenFile holds: who has it may look, and change nothing
}

// Ops is where health and metrics are served.
type Ops struct {
	Listen         string `toml:"listen"`           // "" = none
	MetricsMaxSKUs int    `toml:"metrics_max_skus"` // 0 or above
}

// Log is the log of what happens to this instance.
type Log struct {
	Level  string `toml:"level"`  // "debug" "info" "warn" "error"
	Format string `toml:"format"` // "auto" "text" "json"
}

// AccessLog is the log of requests.
type AccessLog struct {
	Output            string `toml:"output"`              // "off" "stdout" "file:/path"
	RejectedPerSecond int    `toml:"rejected_per_second"` // of each reason in a second; 0 or above
	RefusedEvery      int    `toml:"refused_every"`       // then one in so many; at least 1
	MaskIP            bool   `toml:"mask_ip"`
	BufferSize        Size   `toml:"buffer_size"` // in memory; 0 to 4GiB
}

// check wants the whole file to make sense, section by section in the order of the reference.
func (c *Config) check(r *report) {
	r.oneOf("mode", c.Mode, "enforce", "observe")
	c.Server.check(r)
	c.Upstream.check(r)
	names := c.checkRoutes(r)
	c.Limits.check(r, names)
	c.Auth.check(r, c)
	c.Stock.check(r)
	c.checkSales(r)
	c.Responses.check(r)
	c.checkListeners(r)
	c.checkFleet(r)
	r.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	r.oneOf("log.format", c.Log.Format, "auto", "text", "json")
	c.AccessLog.check(r)
	c.Traces.check(r)
	c.Cache.check(r)
	c.checkSettle(r)
	between(r, "ops.metrics_max_skus", c.Ops.MetricsMaxSKUs, 0, 1<<20)
}

// checkListeners also refuses one address twice, which would only fail when it is opened.
func (c *Config) checkListeners(r *report) {
	keys, addresses := []string{}, []string{}
	for i, address := range c.Server.Listen {
		keys, addresses = append(keys, element("server.listen", i)), append(addresses, address)
	}
	keys, addresses = append(keys, "admin.listen", "ops.listen"), append(addresses, c.Admin.Listen, c.Ops.Listen)
	for i, address := range addresses {
		if strings.HasSuffix(address, ":0") {
			addresses[i] = "" // a free port of the kernel's choice is never the same
		}
	}
	r.unique(addresses, func(i int) string { return keys[i] })

	if c.Admin.Listen != "" {
		r.listen("admin.listen", c.Admin.Listen)
		if !loopback(c.Admin.Listen) && c.Admin.TokenFile == "" {
			r.fail("admin.listen", "%q can be reached from other machines; write token_file, or listen on 127.0.0.1", c.Admin.Listen)
		}
	}
	if c.Ops.Listen != "" {
		r.listen("ops.listen", c.Ops.Listen)
	}
}

func (a *AccessLog) check(r *report) {
	if path, ok := strings.CutPrefix(a.Output, "file:"); !ok {
		r.oneOf("access_log.output", a.Output, "off", "stdout", "file:/var/log/sluice/access.log")
	} else if path == "" {
		r.fail("access_log.output", "%q names no file; write it like \"file:/var/log/sluice/access.log\"", a.Output)
	}
	between(r, "access_log.rejected_per_second", a.RejectedPerSecond, 0, most)
	between(r, "access_log.refused_every", a.RefusedEvery, 1, most)
	between(r, "access_log.buffer_size", a.BufferSize, 0, 4<<30)
}
