package config

import (
	"net/netip"
	"strings"
)

// Decide is a listener on which another proxy asks whether it shall forward a request.
type Decide struct {
	Listen         string   `toml:"listen"` // "host:port" or "unix:/path"
	Dialect        string   `toml:"dialect" words:"nginx traefik caddy envoy haproxy"`
	TrustedProxies []string `toml:"trusted_proxies"` // CIDRs, or "private": who may ask; see Trusted
}

func (d *Decide) preset() {
	*d = Decide{Dialect: "nginx", TrustedProxies: []string{"127.0.0.0/8", "::1/128"}}
}

// Trusted is TrustedProxies as prefixes, "private" spelled out. They are checked already.
func (d *Decide) Trusted() []netip.Prefix { return prefixes(d.TrustedProxies) }

// checkDecide finds what cannot hold where another proxy keeps the body of a request and forwards it.
func (c *Config) checkDecide(r *report) {
	for i := range c.Decide {
		d, at := &c.Decide[i], Element("decide", i)
		r.Listen(at+".listen", d.Listen)
		for j, text := range d.TrustedProxies {
			r.Proxies(Element(at+".trusted_proxies", j), text)
		}
	}
	if len(c.Decide) == 0 {
		return
	}
	if c.UsesLedger() && c.Stock.Reserve.OnNotFound == "release_after_ttl" {
		r.Fail("stock.reserve.on_not_found", "\"release_after_ttl\" sells a unit again while a proxy that asks may still "+
			"wait for the body of its order; write \"release_after_deadline\" if the shop compares Sluice-Deadline, or \"keep\"")
	}
	const why = "stands in the body, which a [[decide]] listener is not sent; "
	body := func(key, text, way string) {
		if names(text, "json") || names(text, "form") {
			r.Fail(key, "%q %s%s", text, why, way)
		}
	}
	const place = "let clients send it in the path, a header or a cookie, like $path_x"
	for i := range c.Routes {
		t, at := &c.Routes[i], Element("route", i)
		body(at+".sku", t.SKU, place)
		body(at+".user", t.User, place)
		body(at+".quantity", t.Quantity, place)
		for j, condition := range t.Require {
			body(Element(at+".require", j), condition, place)
		}
		if t.Gate != "pass" && t.Sources == "all" && names(t.SKU+t.User+t.Quantity, "arg") {
			r.Fail(at+".sources", "\"all\" compares the query with the body, which a [[decide]] listener is not sent; write "+
				"sources = \"one\" if the shop reads the query alone, or "+place)
		}
		if t.Delivery == "queue" {
			r.Fail(at+".delivery", "\"queue\" keeps an order with its body, which a [[decide]] listener is not sent; write "+
				"delivery = \"direct\", or drop [[decide]]")
		}
	}
	for i := range c.Limits.Rates {
		body(Element("limits.rate", i)+".key", c.Limits.Rates[i].Key, "count by another variable")
	}
	for i := range c.Limits.InFlight {
		body(Element("limits.in_flight", i)+".key", c.Limits.InFlight[i].Key, "count by another variable")
	}
	body("limits.concurrency.priority", c.Limits.Concurrency.Priority, "compare another variable")
}

// names reports a template with a variable of a kind.
func names(text, kind string) bool {
	return strings.Contains(text, "$"+kind) || strings.Contains(text, "$("+kind)
}
