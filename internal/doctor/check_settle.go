package doctor

import (
	"strings"

	"sluice/config"
)

func settles(c *config.Config) bool { return c.Settle.Database != "" }

// checkSettle tells what sluice-settle does by this configuration. It does not open the database: the gate runs it too.
func (o *Report) checkSettle(c *config.Config) {
	s := &c.Settle
	stock := "the units left are in sluice_stock"
	if s.Stock.Table != "" {
		stock = "the units left are in " + s.Stock.Table
	}
	o.Info("settle", "sluice-settle books orders in %s; %s; sluice-settle check tries it", s.Database, stock)
	if w := s.Webhook.URL; w != "" {
		o.Info("settle", "sluice-settle sends every change to %s, at least once and signed", w)
		if strings.HasPrefix(w, "http:") {
			o.Warn("settle", "settle.webhook.url is http: orders and users are sent unencrypted; use https beyond one machine")
		}
	}
	if !c.UsesLedger() {
		o.Warn("settle", "no route has gate = \"reserve\": there is no ledger, and nothing to settle; write it, or "+
			"remove [settle]")
	}
	if strings.HasPrefix(s.Database, "sqlite:") && c.Fleet.Instances != 1 {
		o.Warn("settle", "settle.database is a file: all settlers must run on the machine that has it")
	}
	if s.Listen == "" {
		o.Warn("settle", "settle.listen is \"\": no alert tells when orders are not settled")
	}
	if s.OrdersQuery == "" {
		o.Info("settle", "settle.orders_query is empty: sluice-settle report does not compare the shop's orders")
	}
}
