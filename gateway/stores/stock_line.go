package stores

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sluice/admin"
	"sluice/stockgate/ledger"
)

// DescribeStock shows one SKU: its name and what can be bought come first, for other programs.
func DescribeStock(s admin.Stock) string {
	if s.Fault != "" {
		return fmt.Sprintf("%s\t-\t%s", PrintableName(s.SKU), s.Fault)
	}
	text := fmt.Sprintf("%s\t%d", PrintableName(s.SKU), s.Left)
	l := s.Ledger
	if l == nil {
		if !s.OnSale {
			text += "  (not on sale)"
		}
		return text
	}
	if l.State == string(ledger.Lost) {
		return fmt.Sprintf("%s\t-\tits ledger is gone: %s", PrintableName(s.SKU), l.Why)
	}
	text += fmt.Sprintf("\tfree of %d: %d held, %d sold", l.Total, l.Held, l.Sold)
	if l.Limit > 0 {
		text += fmt.Sprintf("; %d a person", l.Limit)
	}
	switch {
	case l.State == string(ledger.Frozen) && l.Untold > 0:
		text += fmt.Sprintf("  (frozen: %d instances or settlers have not told it what they know; if they do not come back: "+
			"sluice stock recover %s --from FILE --apply, with the shop's orders)", l.Untold, PrintableName(s.SKU))
	case !s.OnSale:
		text += "  (" + l.State + ")"
	}
	return text
}

// PrintableName is a name that a client chose, and that cannot disturb a terminal; "-" is none.
func PrintableName(user string) string {
	switch {
	case user == "":
		return "-"
	case strings.ContainsFunc(user, func(c rune) bool { return !unicode.IsPrint(c) }):
		return strconv.Quote(user)
	}
	return user
}

// DescribeReservation shows one order: serial, SKU, state, units, user, and until when it must be decided.
func DescribeReservation(r admin.Reservation) string {
	state := r.State.String()
	switch {
	case r.Overdue:
		state = "overdue"
	case r.Unknown:
		state = "unknown"
	}
	cells := []string{PrintableName(r.Serial), PrintableName(r.SKU), state, strconv.FormatInt(r.Quantity, 10),
		PrintableName(r.User)}
	if !r.Deadline.IsZero() {
		cells = append(cells, r.Deadline.Local().Format(time.RFC3339))
	}
	return strings.Join(cells, "\t")
}
