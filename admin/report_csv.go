package admin

import (
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// writeCSV writes the report as rows of kind, name, field and value, which a spreadsheet can filter and a script can
// grep.
func (r *Report) writeCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	// the error is kept by w
	row := func(kind, name, field, value string) { _ = w.Write([]string{kind, plainText(name), field, value}) }
	number := func(kind, name, field string, n int64) { row(kind, name, field, strconv.FormatInt(n, 10)) }
	row("kind", "name", "field", "value")
	for _, one := range []struct {
		field string
		at    time.Time
	}{{"at", r.At}, {"from", r.From}, {"to", r.To}} {
		row("report", "", one.field, one.at.Format(time.RFC3339))
	}
	row("report", "", "host", plainText(r.Host))
	row("report", "", "version", plainText(r.Version))
	row("report", "", "config", plainText(r.Config))
	balances := "not counted"
	if r.Balances != nil {
		balances = strconv.FormatBool(*r.Balances)
	}
	row("report", "", "balances", balances)
	row("report", "", "more", strconv.FormatBool(r.More))
	number("report", "", "unknown", r.Unknown)
	if r.Sale != nil {
		row("sale", r.Sale.Name, "state", r.Sale.State)
		row("sale", r.Sale.Name, "starts", r.Sale.Starts.Format(time.RFC3339))
		row("sale", r.Sale.Name, "ends", r.Sale.Ends.Format(time.RFC3339))
	}
	for _, b := range r.Stock {
		number("stock", b.SKU, "total", b.Total)
		number("stock", b.SKU, "held", b.Held)
		number("stock", b.SKU, "sold", b.Sold)
		number("stock", b.SKU, "free", b.Free)
		row("stock", b.SKU, "state", b.State)
		row("stock", b.SKU, "balances", strconv.FormatBool(b.Balances))
		row("stock", b.SKU, "counted", strconv.FormatBool(b.Counted))
		row("stock", b.SKU, "fault", b.Fault)
		row("stock", b.SKU, "first_sold", momentText(b.FirstSold))
		row("stock", b.SKU, "sold_out", momentText(b.SoldOut))
	}
	for _, one := range r.NotCounted {
		number("not_counted", one.SKU, "left", one.Left)
	}
	t := &r.Traffic
	number("traffic", "", "requests", t.Requests)
	number("traffic", "", "admitted", t.Admitted)
	number("traffic", "", "shop_requests", t.UpstreamRequests)
	number("traffic", "", "shop_errors", t.UpstreamErrors)
	for _, by := range []struct {
		kind   string
		counts map[string]int64
	}{{"rejected", t.Rejected}, {"observed", t.Observed}, {"rejected_connections", t.RejectedConnections}} {
		for _, reason := range slices.Sorted(maps.Keys(by.counts)) {
			number(by.kind, reason, "count", by.counts[reason])
		}
	}
	for _, one := range []struct {
		name string
		peak Peak
	}{{"requests", t.Peaks.Requests}, {"admitted", t.Peaks.Admitted}, {"rejected", t.Peaks.Rejected},
		{"in_flight", t.Peaks.InFlight},
		{"queue", t.Peaks.Queue}, {"shop_p99_ms", t.Peaks.UpstreamP99}, {"redis_p99_ms", t.Peaks.RedisP99}} {
		if one.peak.At != 0 {
			row("peak", one.name, "value", strconv.FormatFloat(one.peak.Value, 'f', -1, 64))
			row("peak", one.name, "at", time.Unix(one.peak.At, 0).UTC().Format(time.RFC3339))
		}
	}
	w.Flush()
	return w.Error()
}

func momentText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(time.RFC3339)
}

// plainText keeps a spreadsheet from taking a name that a client chose for a formula: also in its wide form, as Chinese
// and Japanese keyboards write it, and behind a semicolon, at which spreadsheets in much of Europe part a line.
func plainText(name string) string {
	var plain strings.Builder
	first := true
	for _, c := range name {
		if first && strings.ContainsRune("=+-@\t\r\n＝＋－＠", c) {
			plain.WriteByte('\'')
		}
		plain.WriteRune(c)
		first = c == ';'
	}
	return plain.String()
}
