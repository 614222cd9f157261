package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// row is one line of the result.
type row struct{ label, value string }

// rows are the ten lines of a result.
func (r Report) rows() []row {
	return []row{
		{"bought one", count(r.Bought + r.HadOne)},
		{"were told \"sold out\"", count(r.SoldOut)},
		{"had no answer at the end", count(r.GaveUp)},
		{"presses of the button", count(r.Asked)},
		{"  rejected by Sluice", count(r.RejectedInAll())},
		{"  failed", count(r.Failed())},
		{"orders in the shop", fmt.Sprintf("%s of %s", count(r.totals().Orders), count(r.Shop.Units))},
		{"  oversold", count(r.totals().Oversold)},
		{"most requests in the shop", count(r.Shop.HighestInFlight)},
		{"time to an answer, p99", r.answerTime()},
	}
}

// rowsOfQueue are the ten lines where one of the sales has orders wait.
func (r Report) rowsOfQueue() []row {
	return []row{
		{"bought, and have the answer", count(r.Bought + r.HadOne)},
		{"were told \"sold out\"", count(r.SoldOut)},
		{"had no answer at the end", count(r.GaveUp)},
		{"presses of the button", count(r.Asked)},
		{"  accepted to wait", count(r.Accepted)},
		{"  rejected by Sluice", count(r.RejectedInAll())},
		{"orders in the shop", fmt.Sprintf("%s of %s", count(r.totals().Orders), count(r.Shop.Units))},
		{"  oversold, made twice", fmt.Sprintf("%s, %s", count(r.totals().Oversold), count(r.Shop.Remade))},
		{"half of the buyers sure in", millis(r.Sure.P50)},
		{"time to an answer, p99", r.answerTime()},
	}
}

// answerTime is how long 99 of 100 answers took at most; "–" when nothing was measured.
func (r Report) answerTime() string {
	if r.Answer.Count == 0 {
		return "–"
	}
	return millis(r.Answer.P99)
}

// title names the sale; queue tells that one of those beside it has orders wait.
func (r Report) title(queue bool) string {
	switch {
	case r.Waits:
		return "queue"
	case queue:
		return "no queue"
	case r.Gated:
		return "with Sluice"
	}
	return "without"
}

// String is the result in ten lines, and a sentence on the ledger or on a broken promise.
func (r Report) String() string {
	var b strings.Builder
	_ = WriteResults(&b, r)
	return b.String()
}

// WriteResults writes reports of the same crowd side by side, in ten lines of at most 80 columns. Below them it writes
// whether the ledger balances, and which promise was broken.
func WriteResults(w io.Writer, all ...Report) error {
	var b strings.Builder
	line := func(label string, value func(Report) string) {
		fmt.Fprintf(&b, "  %-27s ", label)
		for _, r := range all {
			fmt.Fprintf(&b, "%18s", value(r))
		}
		b.WriteByte('\n')
	}
	queue, rows := slices.ContainsFunc(all, func(r Report) bool { return r.Waits }), Report.rows
	if queue {
		rows = Report.rowsOfQueue
	}
	line(count(all[0].Shoppers)+" shoppers", func(r Report) string { return r.title(queue) + ", " + seconds(r.Took) })
	for i, one := range rows(all[0]) {
		line(one.label, func(r Report) string { return rows(r)[i].value })
	}
	for _, r := range all {
		b.WriteString(r.verdict())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// verdict tells whether the ledger balances. Only the shop behind Sluice has promises to break.
func (r Report) verdict() string {
	text := ""
	if r.Interrupted {
		text = "Stopped early; this is what happened so far.\n"
	}
	if !r.Gated {
		return text
	}
	if err := r.Err(); err != nil {
		return text + "BROKEN: " + strings.ReplaceAll(err.Error(), "\n", "\nBROKEN: ") + "\n"
	}
	if l := r.Ledger; l != nil && !r.Interrupted {
		text += fmt.Sprintf("The ledger balances: %s sold, %s free, %s given back; %s lost responses resolved.\n",
			count(l.Sold), count(l.Free), count(l.Released), count(l.Resolved))
	}
	return text + r.Settled.String()
}

// progressInterval is how often a line of progress is written.
const progressInterval = time.Second

// follow writes a line of progress now and then, until gone is closed.
func follow(out io.Writer, gone <-chan struct{}, read func() Report) {
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r := read()
			fmt.Fprintf(out, "%6s  %s of %s sold, %s oversold, %s presses, %s rejected, %s failed, %s in the shop\n",
				seconds(r.Took), count(r.Shop.Orders), count(r.Shop.Units), count(r.Shop.Oversold), count(r.Asked),
				count(r.RejectedInAll()), count(r.Failed()), count(r.Shop.InFlight))
		case <-gone:
			return
		}
	}
}
