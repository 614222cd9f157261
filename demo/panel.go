package demo

import (
	"fmt"
	"strings"
)

// Colours of a terminal (ECMA-48, SGR).
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	grey   = "90"
)

// part is a stretch of a bar.
type part struct {
	n      int64
	colour string
	sign   string
}

// columns of a bar.
const barWidth = 24

// panel draws a sale in six lines of at most 80 columns, seven where the gate takes the units.
func panel(r Report, colour bool) []string {
	paint := painter(colour)
	sold := []part{{min(r.Shop.Orders, r.Shop.Units), green, "█"}, {r.Shop.Oversold, red, "!"}}
	people := []part{{r.Bought + r.HadOne, green, "█"}, {r.SoldOut + r.TurnedAway, grey, "▒"}, {r.GaveUp, red, "x"}, {r.trying(), yellow, "░"}}
	presses := []part{{r.Admitted, green, "█"}, {r.RefusedInAll(), blue, "▒"}, {r.Failed(), red, "x"}, {r.underWay(), yellow, "░"}}
	head := []string{
		paint("1", "  "+r.title()+", "+seconds(r.Took)),
		labelled("sold", bar(sold, max(r.Shop.Units, r.Shop.Orders), paint), fmt.Sprintf("%s of %s", count(r.Shop.Orders), count(r.Shop.Units))),
	}
	if l := r.Ledger; l != nil {
		units := []part{{l.Sold, green, "█"}, {l.Held, yellow, "░"}}
		head = append(head, labelled("ledger", bar(units, l.Total, paint), fmt.Sprintf("%s free, %s held, %s sold", count(l.Free), count(l.Held), count(l.Sold))))
	}
	return append(head,
		labelled("shoppers", bar(people, r.Shoppers, paint), fmt.Sprintf("%s bought, %s gone, %s trying", count(r.Bought+r.HadOne), count(r.SoldOut+r.TurnedAway), count(r.trying()))),
		labelled("asked", bar(presses, r.Asked, paint), fmt.Sprintf("%s: %s admitted, %s refused", count(r.Asked), count(r.Admitted), count(r.RefusedInAll()))),
		labelled("in shop", bar([]part{{r.Shop.InFlight, yellow, "█"}}, r.Shoppers, paint), fmt.Sprintf("%s now, %s at most", count(r.Shop.InFlight), count(r.Shop.HighestInFlight))),
		fmt.Sprintf("  %-9s %s", "refused", reasons(r.Refused)),
	)
}

func labelled(label, bar, text string) string { return fmt.Sprintf("  %-9s %s %s", label, bar, text) }

// reasons names the most frequent ones, as many as fit.
func reasons(all []Refused) string {
	const most = 67
	if len(all) == 0 {
		return "–"
	}
	var text string
	for _, one := range all {
		next := text + fmt.Sprintf("%s %s  ", one.Reason, count(one.Count))
		if len(next) > most {
			break
		}
		text = next
	}
	return strings.TrimRight(text, " ")
}

// painter colours text, or leaves it as it is.
func painter(colour bool) func(colour, text string) string {
	if !colour {
		return func(_, text string) string { return text }
	}
	return func(colour, text string) string { return "\x1b[" + colour + "m" + text + "\x1b[0m" }
}

// bar draws the parts of a whole. A part that is there is seen, however small, while there is room.
func bar(parts []part, whole int64, paint func(colour, text string) string) string {
	var b strings.Builder
	var sum int64
	drawn := 0
	for _, p := range parts {
		if p.n <= 0 || whole <= 0 || drawn == barWidth {
			continue
		}
		sum += p.n
		ends := min(barWidth, max(drawn+1, int(sum*barWidth/whole)))
		b.WriteString(paint(p.colour, strings.Repeat(p.sign, ends-drawn)))
		drawn = ends
	}
	return b.String() + paint(grey, strings.Repeat("·", barWidth-drawn))
}
