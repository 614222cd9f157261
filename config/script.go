package config

import (
	"sluice/config/position"
	"sluice/config/report"
	"strings"
	"time"
)

// Script is the shop's own script, by which routes that reserve take units. Without one they take them from the ledger.
type Script struct {
	Preset  string            `toml:"preset"`  // one that comes with Sluice; or File
	File    string            `toml:"file"`    // the shop's Lua
	Keys    []string          `toml:"keys"`    // templates with $sku, $serial and $user: KEYS
	Args    []string          `toml:"args"`    // templates with $quantity, $token and $time too: ARGV
	Codes   map[string]string `toml:"codes"`   // what the script returns, and what that means
	Release string            `toml:"release"` // a file that ends in .lua, a preset's name, or "none"
	// a second run with the same keys and arguments takes nothing more
	Idempotent bool          `toml:"idempotent"`
	TTL        time.Duration `toml:"ttl" range:"0s to 720h"` // 0 = no order is kept
	Take, Back string        // what File and GiveBack hold
}

// Used tells whether routes that reserve take units by a script.
func (s *Script) Used() bool { return s.Preset != "" || s.File != "" }

// checkScript rejects what a script cannot go together with. Package script knows what it needs itself.
func (s *Stock) checkScript(r *report.Report) {
	c := &s.Script
	for i, text := range c.Keys {
		r.Variables(position.Element("stock.script.keys", i), text, append(skuNames(), "serial", "user")...)
	}
	for i, text := range c.Args {
		r.Variables(position.Element("stock.script.args", i), text,
			append(skuNames(), "serial", "user", "quantity", "token", "time")...)
	}
	if !c.Used() {
		if len(c.Keys)+len(c.Args)+len(c.Codes) > 0 || c.Release != "" || c.Idempotent || c.TTL != 0 {
			r.Fail("stock.script",
				"names no script; write preset = \"counter_codes\" or file = \"take.lua\" into it, or drop it")
		}
		return
	}
	if s.Source != "redis" {
		r.Fail("stock.script", "a script runs in Redis, but stock.source is %q; write source = \"redis\"", s.Source)
	}
	kept := c.TTL > 0
	switch {
	case kept && c.TTL < time.Second:
		r.Fail("stock.script.ttl", "is shorter than 1s; write how long an order may take until it is paid, like \"15m\"")
	case kept && c.Release == "none":
		r.Fail("stock.script.ttl", "gives back what is not confirmed in time, but release is \"none\"; drop one of both")
	case kept && (s.Reserve.StatusURL == "" || s.Reserve.OnNotFound == "keep"):
		r.Fail("stock.script.ttl", "gives back what the shop says it does not know: write stock.reserve.status_url, and "+
			"on_not_found = \"release_after_deadline\", \"cancel_then_release\" or \"release_after_ttl\"")
	}
	if !kept && s.Reserve.StatusURL != "" {
		r.Fail("stock.reserve.status_url", "is asked for orders that are kept, and a script keeps none; drop one of both, "+
			"or write stock.script.ttl")
	}
	if !kept && s.Reserve.OnNotFound != "keep" {
		r.Fail("stock.reserve.on_not_found", "is for orders that are kept, and a script keeps none; drop one of both, or "+
			"write stock.script.ttl")
	}
}

// read reads the shop's Lua. A relative path starts from the configuration's folder.
func (s *Script) read(r *report.Report, folder string) {
	if s.File != "" {
		s.Take = r.Lua("stock.script.file", folder, s.File)
	}
	if strings.HasSuffix(s.Release, ".lua") {
		s.Back = r.Lua("stock.script.release", folder, s.Release)
	}
}
