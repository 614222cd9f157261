package main

import (
	"fmt"
	"io"

	"sluice/config"
)

// tellLayout says what the shop's layout costs, and what it cannot tell.
func tellLayout(w io.Writer, c *config.Config) {
	l := c.Stock.Layout
	if c.Stock.Source != "redis" || !stocked(c) {
		return
	}
	if l.UsersKey != "" {
		fmt.Fprintf(w, "buyers    requests that may go on otherwise ask whether their user is in %s%s: many in one pipeline, one at a time\n", l.Prefix, l.UsersKey)
	}
	traceless := l.UsersKey == "" && l.StatusKey == "" && l.SoldOutFlag == ""
	if l.Type == "list" && traceless && c.Stock.UnknownSKU == "allow" {
		fmt.Fprintf(w, "warning   after a restart an emptied list cannot be told from one that never was, and stock.unknown_sku lets those through: configure users_key, status_key or sold_out_flag\n")
	}
	if l.Type == "list" && l.SoldOutAt < 0 {
		fmt.Fprintf(w, "warning   stock.layout.sold_out_at is %d, but a list has no fewer units than none: an empty one is sold out\n", l.SoldOutAt)
	}
}
