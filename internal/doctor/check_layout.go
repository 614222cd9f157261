package doctor

import (
	"sluice/config"
)

// checkLayout says what the shop's layout costs, and what it cannot tell.
func (o *Report) checkLayout(c *config.Config) {
	l := c.Stock.Layout
	if l.UsersKey != "" {
		o.Info("buyers", "requests that may go on otherwise ask whether their user is in %s%s: many in one pipeline, one "+
			"at a time", l.Prefix, l.UsersKey)
	}
	if l.SharesUsers() {
		o.Warn("buyers", "that set is of several SKUs: who has bought one of them can buy no other; write $sku into "+
			"stock.layout.users_key for a set of each")
	}
	traceless := (l.UsersKey == "" || l.SharesUsers()) && l.StatusKey == "" && l.SoldOutKey == ""
	if l.Type == "list" && traceless && c.Stock.UnknownSKU == "allow" {
		o.Warn("layout", "after a restart an emptied list cannot be told from one that never was, and stock.unknown_sku "+
			"admits those: configure users_key, status_key or sold_out_key")
	}
	if l.Type == "list" && l.SoldOutAt < 0 {
		o.Warn("layout", "stock.layout.sold_out_at is %d, but a list has no fewer units than none: an empty one is sold out",
			l.SoldOutAt)
	}
}
