package loadtest

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteTo writes the result for people, at most 100 columns wide.
func (r *Result) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-15s %s\n", label, fmt.Sprintf(format, args...))
	}
	switch {
	case r.SoldOut:
		line("sold out", "after %.2f s; the first unit after %.2f s", r.LastUnit, r.FirstUnit)
	default:
		line("sold out", "no: %d of %d units were sold in %.1f s", r.Shop.Orders, r.Units, r.Took)
	}
	line("oversold", "%d", r.Shop.Oversold)
	h := r.Buyer
	line("buyers", "%d: bought %d, sold out %d, gave up %d, rejected %d, unsure %d", r.Buyers, h.Bought, h.SoldOut,
		h.GaveUp, h.Rejected, h.Unsure)
	line("requests", "%d, and %d that asked what became of an order; at most %d in a second; %d broken", r.Requests,
		r.StatusRequests, r.Crowd.PeakPerS, r.Broken)
	if m := r.Room; m != nil {
		line("waiting room", "%d joined, %d polls, %d passes; %d were told of the end while they waited", m.Joined, m.Polls,
			m.Passes, m.Ended)
	}
	if q := r.Queue; q != nil {
		line("queue", "%d accepted (p99 %.1f ms): %d delivered, %d ended without an order, %d still waited", q.Accepted,
			q.Answer.P99, q.Delivered, q.Ended, q.Waiting)
	}
	for _, reason := range slices.SortedFunc(maps.Keys(r.Rejected), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Rejected[b], r.Rejected[a]), cmp.Compare(a, b))
	}) {
		line("  rejected", "%9d %s", r.Rejected[reason], reason)
	}
	line("rejections", "p50 %.1f ms, p99 %.1f ms", r.Rejection.P50, r.Rejection.P99)
	line("shop's answers", "p50 %.1f ms, p99 %.1f ms", r.Order.P50, r.Order.P99)
	line("both", "p50 %.1f ms, p99 %.1f ms from when the buyer wanted it, the crowd's own lateness included", r.Felt.P50,
		r.Felt.P99)
	s := r.Shop
	line("shop", "%d requests, %d orders, %d failed; at most %d in 10 ms, %d in a second, %d in flight", s.Requests,
		s.Orders, s.Failed, s.PeakPer10ms, s.PeakPerS, s.PeakInFlight)
	line("", "%.0f %% busy while it sold: %d places, an order takes %.1f ms (p50); waits p99 %.1f ms", 100*s.Busy,
		s.Capacity, s.Works.P50, s.Waits.P99)
	if l := r.Ledger; l != nil {
		line("books", "total %d = sold %d + held %d + free %d", l.Total, l.Sold, l.Held, l.Free)
	}
	if len(r.Redis.Calls) > 0 {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(r.Redis.Calls)) {
			kinds = append(kinds, fmt.Sprintf("%s %d", kind, r.Redis.Calls[kind]))
		}
		text := strings.Join(kinds, ", ")
		if r.Shop.Orders > 0 {
			text += fmt.Sprintf("; %.2f an order", r.Redis.PerOrder)
		}
		line("redis calls", "%s", text)
	}
	if c := r.Redis.Command; c.Count > 0 {
		line("redis", "a command takes p50 %.2f ms, p99 %.2f ms", c.P50, c.P99)
	}
	line("machine", "%d cores, %.1f s; crowd, gateway and shop took %.1f s of processor time", r.CPU.Cores, r.Took,
		r.CPU.Used)
	line("crowd", "%d connections, %s; sent late: p50 %.1f ms, p99 %.1f ms%s", r.Crowd.Connections, r.Shape,
		r.Crowd.Late.P50, r.Crowd.Late.P99, map[bool]string{true: " (SATURATED)"}[r.Crowd.Saturated])
	for _, text := range r.NotTested {
		line("not tested", "%s", text)
	}
	b.WriteByte('\n')
	for _, a := range r.Advice {
		b.WriteString("- " + wrap(a.Text, 98) + "\n")
	}
	if err := r.Err(); err != nil {
		fmt.Fprintf(&b, "\nBROKEN %s\n", strings.ReplaceAll(err.Error(), "\n", "\nBROKEN "))
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// wrap breaks text between words; further lines are indented.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > width:
			b.WriteString("\n  ")
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
