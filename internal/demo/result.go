package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sluice/internal/load"
)

// row is one line of the result.
type row struct{ label, value string }

// rows are the lines of a result; queue tells that one of the sales beside it has orders wait.
func (r Report) rows(queue bool) []row {
	bought := "bought one"
	if queue {
		bought = "bought, and have the answer"
	}
	rows := []row{
		{bought, count(r.Home[load.Bought] + r.Home[load.HadOne])},
		{"were told \"sold out\"", count(r.Home[load.SoldOut])},
		{"had another final answer", count(r.Home[load.Rejected])},
		{"had no answer at the end", count(r.Home[load.GaveUp])},
		{"presses of the button", count(r.Requests)},
	}
	rejected := row{"  rejected by Sluice", count(load.Sum(r.Rejected))}
	answer := row{"time to an answer, p99", r.answerTime()}
	if queue {
		return append(rows, row{"  accepted to wait", count(r.Accepted)}, rejected, r.orders(),
			row{"  oversold, made twice", fmt.Sprintf("%s, %s", count(r.totals().Oversold), count(r.Shop.Remade))},
			row{"half of the buyers sure in", millis(r.Sure.P50)}, answer)
	}
	return append(rows, rejected, row{"  failed", count(r.Failed())}, r.orders(), r.oversold(),
		row{"most requests in the shop", count(r.Shop.PeakInFlight)}, answer)
}

func (r Report) orders() row {
	return row{"orders in the shop", fmt.Sprintf("%s of %s", count(r.totals().Orders), count(r.Shop.Units))}
}

func (r Report) oversold() row { return row{"  oversold", count(r.totals().Oversold)} }

// rowsOfRoom are the lines of a sale with a waiting room.
func (r Report) rowsOfRoom() []row {
	m := r.Room
	return []row{
		{"joined before the start", count(m.Early)},
		{"places given out", count(m.Joined)},
		{"  to people who joined again", count(m.Joined - m.People)},
		{"called", count(m.Called)},
		{"  of the first half to join", fmt.Sprintf("%s of %s", count(m.CalledOf[0]), count(m.Half[0]))},
		{"  of the second half", fmt.Sprintf("%s of %s", count(m.CalledOf[1]), count(m.Half[1]))},
		{"  bought one", count(m.Bought)},
		{"  did not come", count(m.Absent)},
		{"  found nothing left", count(m.Nothing)},
		{"  went home otherwise", count(m.Called - m.Bought - m.Absent - m.Nothing)},
		{"were told of the end", count(m.Over)},
		r.orders(), r.oversold(),
		{"calls while none was free", count(m.Unjust)},
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
	case r.Room != nil:
		return "by a draw"
	case r.Waits:
		return "queue"
	case queue:
		return "no queue"
	case r.Gated:
		return "with Sluice"
	}
	return "without"
}

// writeResults writes reports of the same crowd side by side, in lines of at most 80 columns. Below them it writes
// whether the ledger balances, and which promise was broken.
func writeResults(w io.Writer, all ...Report) error {
	var b strings.Builder
	line := func(label string, value func(Report) string) {
		fmt.Fprintf(&b, "  %-27s ", label)
		for _, r := range all {
			fmt.Fprintf(&b, "%18s", value(r))
		}
		b.WriteByte('\n')
	}
	queue := slices.ContainsFunc(all, func(r Report) bool { return r.Waits })
	rows := func(r Report) []row { return r.rows(queue) }
	if all[0].Room != nil {
		rows = Report.rowsOfRoom
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
	if m := r.Room; m != nil && !r.Interrupted {
		text += fmt.Sprintf("People were called while units were free alone; joining first was no advantage.\n"+
			"The published record of the draw proves %s places.\n", count(m.Verified))
	}
	return text + r.Audit.String()
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
			room := ""
			if r.Room != nil {
				room = fmt.Sprintf("%-11s  %s places, ", r.Room.Phase, count(r.Room.Joined))
			}
			fmt.Fprintf(out, "%6s  %s%s of %s sold, %s oversold, %s presses, %s rejected, %s failed, %s in the shop\n",
				seconds(r.Took), room, count(r.Shop.Orders), count(r.Shop.Units), count(r.Shop.Oversold), count(r.Requests),
				count(load.Sum(r.Rejected)), count(r.Failed()), count(r.Shop.UnderWay))
		case <-gone:
			return
		}
	}
}
