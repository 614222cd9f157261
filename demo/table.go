package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// row is one line of a report: a figure, and what it means to somebody who sees it for the first time.
type row struct {
	label   string // indented by its rank: a part stands below its sum
	value   string
	meaning string
}

// meanings explain the gate's reasons; one that is not here stands for itself.
var meanings = map[string]string{
	"sold_out":      "nothing is left: final, do not come back",
	"window":        "too many within these 10 ms: press again",
	"concurrency":   "the shop is full, and so is the line: again",
	"queue_timeout": "waited for the shop in vain: press again",
	"client_gone":   "had left before their turn came",
	"rate":          "this shopper asks too often: press again",
	"conn_rate":     "this connection asks too often: press again",
	"conn_open":     "too many connections: press again",
	"ip_conns":      "too many connections from one address: again",
	"stock_error":   "the stock cannot be read: press again",
	"no_upstream":   "the shop cannot be reached; nothing was sent",
	"shutting_down": "the gate is closing",
	"duplicate":     "has bought before",
	"in_progress":   "this very order is under way: look it up",
	"confirmed":     "this very order is placed: told once more",
	"released":      "this very order was given back: final",
}

// rows is the report in the order in which it is read.
func (r Report) rows() []row {
	rows := []row{
		{"shoppers", count(r.Shoppers), "people who want one"},
		{"  bought", count(r.Bought), "have their order"},
		{"  sold out", count(r.SoldOut), "were told so and went home"},
		{"  had one", count(r.HadOne), "bought by a press whose answer was lost"},
		{"  turned away", count(r.TurnedAway), "had another final answer"},
		{"  gave up", count(r.GaveUp), "were not done when time was up"},
		{"asked", count(r.Asked), "presses of the button, repeated ones too"},
		{"  admitted", count(r.Admitted), "reached the shop, and the shop answered"},
		{"  refused", count(r.RefusedInAll()), "the gate answered in the shop's place"},
	}
	for _, one := range r.Refused {
		rows = append(rows, row{"    " + one.Reason, count(one.Count), meanings[one.Reason]})
	}
	rows = append(rows,
		row{"  failed", count(r.Failed()), "no answer that tells what happened"},
		row{"    unanswered", count(r.Unanswered), "still waiting when time was up"},
		row{"    broken", count(r.Broken), "no connection, or it broke"},
		row{"    unknown", count(r.Unknown), "the gate cannot tell what became of it"},
		row{"looked up", count(r.Looked), "asked the gate what became of their order"},
	)
	return slices.Concat(withoutZeros(rows), r.shopRows(), r.ledgerRows(), r.timeRows())
}

// withoutZeros leaves out what did not happen, but for the sums that everybody looks for.
func withoutZeros(rows []row) (rest []row) {
	for _, one := range rows {
		switch strings.TrimSpace(one.label) {
		case "shoppers", "bought", "sold out", "asked", "admitted", "refused", "failed":
		default:
			if one.value == "0" {
				continue
			}
		}
		rest = append(rest, one)
	}
	return rest
}

func (r Report) shopRows() []row {
	return []row{
		{"sold", count(r.Shop.Orders), "orders in the shop's own books"},
		{"oversold", count(r.Shop.Oversold), fmt.Sprintf("of these, beyond the %s for sale", count(r.Shop.Units))},
		{"sold twice", count(r.Shop.Twice), "shoppers with more than one order"},
		{"in the shop", count(r.Shop.HighestInFlight), "requests at once, at the worst moment"},
	}
}

func (r Report) timeRows() []row {
	return []row{
		{"refusal p50", millis(r.Refusal, r.Refusal.P50), "until the gate has said no: half of them"},
		{"refusal p99", millis(r.Refusal, r.Refusal.P99), "99 of 100, the gate's own line included"},
		{"order p50", millis(r.Order, r.Order.P50), "until a buyer has the order, all waits in it"},
		{"order p99", millis(r.Order, r.Order.P99), "of the press that succeeded"},
		{"shop p50", millis(r.Shop.Took, r.Shop.Took.P50), "inside the shop, its own line included"},
		{"shop p99", millis(r.Shop.Took, r.Shop.Took.P99), ""},
	}
}

// title names the sale in a table.
func (r Report) title() string {
	if r.Gated {
		return "with the gate"
	}
	return "without a gate"
}

// WriteTo writes the report as a table with a verdict below, at most 80 columns wide.
func (r Report) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, r.String())
	return int64(n), err
}

// String is the report as WriteTo writes it.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n  %-18s %12s   %s\n\n", r.title(), seconds(r.Took), "what it means")
	for _, one := range r.rows() {
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %-18s %12s   %s", one.label, one.value, one.meaning), " ") + "\n")
	}
	return b.String() + "\n" + r.verdict()
}

// Compare writes two reports of the same crowd side by side.
func Compare(w io.Writer, a, b Report) error {
	var text strings.Builder
	line := func(label, left, right string) { fmt.Fprintf(&text, "  %-18s %16s %16s\n", label, left, right) }
	line("", a.title(), b.title())
	line("took", seconds(a.Took), seconds(b.Took))
	right := map[string]string{}
	for _, one := range b.rows() {
		right[one.label] = one.value
	}
	for _, one := range a.rows() {
		line(one.label, one.value, orNone(right[one.label]))
		delete(right, one.label)
	}
	for _, one := range b.rows() { // what happened to the second alone
		if value, alone := right[one.label]; alone {
			line(one.label, "–", value)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func orNone(value string) string {
	if value == "" {
		return "–"
	}
	return value
}
