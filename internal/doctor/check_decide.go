package doctor

import (
	"fmt"
	"strings"

	"sluice/config"
)

func decides(c *config.Config) bool { return len(c.Decide) > 0 }

// checkDecide says what of a route does not hold for requests that another proxy forwards.
func (o *Report) checkDecide(c *config.Config) {
	for i := range c.Decide {
		d := &c.Decide[i]
		o.Info("decide", "%s asks at %s, from %s", d.Dialect, d.Listen, strings.Join(d.TrustedProxies, ", "))
	}
	slots := false
	for i := range c.Routes {
		r, at := &c.Routes[i], func(key string) string { return c.At(fmt.Sprintf("route[%d].%s", i+1, key)) }
		slots = slots || r.Gate != "pass"
		if r.Cache > 0 {
			o.Warn("decide", "%s: pages are kept for requests that Sluice forwards itself; use the cache of the proxy that "+
				"asks", at("cache"))
		}
		if r.Timeout > 0 {
			o.Warn("decide", "%s: the time of the proxy that asks holds; write it there, not above upstream.timeout",
				at("timeout"))
		}
	}
	warn := func(wrong bool, format string, args ...any) {
		if wrong {
			o.Warn("decide", format, args...)
		}
	}
	warn(c.Stock.SoldOutOn != nil, "stock.sold_out_on: the shop's answers are not seen; let stock.source tell what is "+
		"left, or end the SKU by the API")
	warn(c.UsesLedger() && c.Stock.Reserve.StatusURL == "", "stock.reserve.status_url is empty: an order of which POST "+
		"/settle tells nothing stays held; write where the shop tells of an order")
	warn(c.UsesLedger() && c.Stock.Reserve.ConfirmJSON != nil, "stock.reserve.confirm_json: POST /settle has no body, so "+
		"a status of confirm_on decides nothing; let the shop send Sluice-Order, or drop confirm_json")
	warn(slots, "limits.concurrency, limits.in_flight and route.max_in_flight hold a slot until POST /settle, or for "+
		"upstream.timeout (%s): let the proxy tell what became of each request", c.Upstream.Timeout)
}
