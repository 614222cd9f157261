package demo

import (
	"fmt"
	"strings"
)

// verdict says in a few sentences what the figures say.
func (r Report) verdict() string {
	var b strings.Builder
	if r.Interrupted {
		b.WriteString("Stopped early; this is what happened so far.\n")
	}
	fmt.Fprintf(&b, "%s of %s sold, %s oversold, %s.\n", count(r.Shop.Orders), count(r.Shop.Units), count(r.Shop.Oversold), twice(r.Shop.Twice))
	fmt.Fprintf(&b, "%s shoppers pressed %s times.\n", count(r.Shoppers), count(r.Asked))
	if r.Gated {
		fmt.Fprintf(&b, "The gate let %s through and answered %s itself;\n", count(r.Shop.Received), count(r.RefusedInAll()))
		fmt.Fprintf(&b, "the shop never had more than %s at once.\n", count(r.Shop.HighestInFlight))
	} else {
		fmt.Fprintf(&b, "All %s went to the shop, up to %s at once;\n", count(r.Shop.Received), count(r.Shop.HighestInFlight))
		fmt.Fprintf(&b, "after %s %s shoppers had no answer yet.\n", seconds(r.Took), count(r.GaveUp))
	}
	b.WriteString(r.settled())
	if err := r.Err(); err != nil {
		fmt.Fprintf(&b, "BROKEN: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nBROKEN: "))
	}
	return b.String()
}

func twice(users int64) string {
	if users == 0 {
		return "nobody got two"
	}
	return count(users) + " got two"
}
