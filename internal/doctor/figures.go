package doctor

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"sluice/config"
)

// checkMode says whether anything is rejected at all.
func (o *Report) checkMode(c *config.Config) { o.Info("mode", "%s", c.Mode) }

// listRoutes says which gate stands before which requests, and warns of products that share one stock.
func (o *Report) listRoutes(c *config.Config) {
	for i, r := range c.Routes {
		o.Info("route", "%-18s %-6s %s", r.Name, r.Gate, r.Match)
		if r.SKU != "" && !strings.Contains(r.SKU, "$") {
			o.Warn("route", "%s: sku %q is the same for every request, so all products have one stock; for a value of the "+
				"request write a variable, such as $path_sku or $json_sku", c.At(fmt.Sprintf("route[%d].sku", i+1)), r.SKU)
		}
		if r.Gate == "check" && strings.Contains(r.Quantity, "$") {
			o.Warn("route", "%s: gate \"check\" does not compare the quantity with the stock; gate \"reserve\" does",
				c.At(fmt.Sprintf("route[%d].quantity", i+1)))
		}
	}
}

// sizeConcurrency says by Little's law how many orders a second the shop may get.
func (o *Report) sizeConcurrency(c *config.Config) {
	slots := c.Limits.Concurrency.MaxInFlight
	o.Info("in flight", "at most %d inside the shop: at 50ms an order that is %d/s, at 500ms %d/s (Little's law)",
		slots, slots*20, slots*2)
	o.sizeInFlight(c)
}

// sizeReadings says what gate "check" costs Redis, and how many orders one reading admits.
func (o *Report) sizeReadings(c *config.Config) {
	if n := c.Stock.MaxInFlightPerUnit; n > 0 {
		o.Info("in flight", "at most %d orders of a SKU for each unit that is left; more get 429 concurrency "+
			"(stock.max_in_flight_per_unit)", n)
	}
	o.Info("redis", "at most %d readings a second of a SKU that is asked for, whatever the traffic, many SKUs at once; "+
		"none otherwise but a ping a second", int(time.Second/c.Stock.PollInterval))
}

// checkLists says how many networks are denied, and how many are never limited.
func (o *Report) checkLists(c *config.Config) {
	if denied, bypassed := len(c.Limits.Denied), len(c.Limits.Bypassed); denied+bypassed > 0 {
		o.Info("lists", "%d networks denied, %d never limited", denied, bypassed)
	}
}

// checkAddresses warns where the limits of an address could meet all shoppers at once.
func (o *Report) checkAddresses(c *config.Config) {
	o.Info("addresses", "at most %d connections of one address: shoppers behind one NAT share them",
		c.Limits.Connection.MaxConnectionsPerIP)
	if len(c.Server.TrustedProxies) == 0 {
		o.Warn("addresses", "server.trusted_proxies is empty: behind a proxy or CDN all shoppers would be one address; "+
			"write the networks of those that stand before Sluice")
	}
}

// checkMemory warns of a stock that ends with the process, and of keys that it leaves without a use.
func (o *Report) checkMemory(c *config.Config) {
	for _, key := range config.Diff(config.Default(), c) {
		if strings.HasPrefix(key, "stock.redis.") || strings.HasPrefix(key, "stock.layout.") {
			o.Warn("stock", "%s is not used, since stock.source is \"memory\"; write source = \"redis\"", key)
			break
		}
	}
	o.Warn("stock", "stock.source is \"memory\": for trials; set the stock with sluice stock set SKU UNITS --admin %s, it "+
		"is forgotten at exit", cmp.Or(c.Admin.Listen, "ADDRESS"))
}

// checkFiles names the files that all users of this machine may write, and those with secrets that others may read.
func (o *Report) checkFiles(c *config.Config) {
	for _, path := range c.WritableByAll() {
		o.Warn("files", "%s: every user of this machine may write it, and change what the gateway does; write: chmod o-w %s",
			path, path)
	}
	for _, f := range c.SecretFiles() {
		if info, err := os.Stat(f.Path); err == nil && info.Mode().Perm()&0o077 != 0 {
			o.Warn("secrets", "%s: other users may read %s (mode %04o); write: chmod 600 %[2]s", f.Key, f.Path,
				info.Mode().Perm())
		}
	}
}
