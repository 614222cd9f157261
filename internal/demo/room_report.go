package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"
)

// RoomReport tells what became of the people of a room, counted apart from what the room says of itself.
type RoomReport struct {
	Interrupted bool
	Took        time.Duration

	People, Late  int64    // who joined before the start, and after it
	Half          [2]int64 // of the early ones: who joined in the first half of the time, and in the second
	CalledOf      [2]int64 // of these: who were called
	Called        int64    // all who were called
	Absent        int64    // of these: who did not come
	Claimed       int64    // a pass
	Bought        int64    // were told their order
	InVain        int64    // were called and told that nothing is left
	Over          int64    // were told while waiting that the room is over
	Unjust        int64    // calls while nothing was free
	Wrong         int64    // people whom the record of the draw calls otherwise than the room did
	Verified      int64    // people whose place was computed from the record
	Failed        error    // what a person could not ask
	Shop          ShopTotals
	Ledger        Ledger
	Settled       *Settled // nil = orders are not settled, or not yet
	unaccountable int64    // people who neither were called, nor heard the end
}

// roomSight is what the public document has said so far.
type roomSight struct {
	last   sight
	unjust int64
}

type sight struct {
	ServerTime int64 `json:"server_time_ms"`
	Phase      string
	Left       string
	Serving    int64
	Threshold  int64
	Issued     int64
}

// see compares a document with the one before. Between two that follow each other, and both say that nothing is free,
// no people may have been called. It does not judge where the gateway has read a state between them that was not seen.
func (r *roomSight) see(next sight) {
	before := r.last
	r.last = next
	follows := next.ServerTime-before.ServerTime <= tickAtMost.Milliseconds()
	if follows && before.Left == "none" && next.Left == "none" &&
		(next.Serving > before.Serving || next.Threshold > before.Threshold) {
		r.unjust++
	}
}

// watch reads the document until ctx ends, and writes a line of progress each second.
func (v *roomVisit) watch(ctx context.Context, begin time.Time, shop *Shop, out io.Writer) {
	told := begin
	for sleep(ctx, lookEvery) == nil {
		resp, err := v.send(ctx, 0, http.MethodGet, "/.sluice/room/"+v.Room)
		if err != nil {
			continue
		}
		var next sight
		err = json.NewDecoder(resp.Body).Decode(&next)
		resp.Body.Close()
		if err != nil {
			continue
		}
		v.seen.see(next)
		if time.Since(told) >= progressInterval {
			told = told.Add(progressInterval)
			l, books := v.Ledger(), shop.Totals()
			fmt.Fprintf(out, "%6s  %-11s  %s joined, %s of %s sold, %s reserved, %s free\n", seconds(time.Since(begin)),
				next.Phase, count(next.Issued), count(books.Orders), count(books.Units), count(l.Held), count(l.Free))
		}
	}
}

// report counts what became of all.
func (v *roomVisit) report(ctx context.Context, shop *Shop, took time.Duration) RoomReport {
	r := RoomReport{Took: took, Interrupted: ctx.Err() != nil, Unjust: v.seen.unjust, Shop: shop.Totals(),
		Ledger: v.Ledger()}
	for i := range v.people {
		r.add(i, len(v.people), &v.people[i])
	}
	if r.Failed == nil {
		r.Failed = v.verify(ctx, &r)
	}
	return r
}

func (r *RoomReport) add(i, all int, p *visitor) {
	if p.err != nil && r.Failed == nil && !r.Interrupted {
		r.Failed = fmt.Errorf("%s: %w", shopperOf(i), p.err)
	}
	half := 0
	if i >= all/2 {
		half = 1
	}
	for _, c := range []struct {
		is bool
		to *int64
	}{
		{p.early, &r.People}, {!p.early, &r.Late}, {p.early, &r.Half[half]}, {p.early && p.called, &r.CalledOf[half]},
		{p.called, &r.Called}, {p.called && absent(i), &r.Absent}, {p.claimed, &r.Claimed}, {p.bought, &r.Bought},
		{p.soldOut, &r.InVain}, {p.over, &r.Over}, {!p.called && !p.over, &r.unaccountable},
	} {
		if c.is {
			*c.to++
		}
	}
}

// maxRecord bounds the record of the draw that is read, in bytes.
const maxRecord = 4 << 20

// verify computes from the record of the draw alone who was called, and compares that with what people were told.
func (v *roomVisit) verify(ctx context.Context, r *RoomReport) error {
	resp, err := v.send(ctx, 0, http.MethodGet, "/.sluice/room/"+v.Room+"/draw")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	record, err := io.ReadAll(io.LimitReader(resp.Body, maxRecord))
	if err != nil {
		return err
	}
	for i := range v.people {
		p := &v.people[i]
		if !p.early {
			continue
		}
		at, err := v.Verify(record, shopperOf(i))
		if err != nil {
			return err
		}
		r.Verified++
		if p.called != (at != 0) && (p.called || at < p.leftAt) { // who has left is not told of units that came back
			r.Wrong++
		}
	}
	return nil
}

// bias is by how many standard deviations the two halves differ from what a fair draw gives.
func (r *RoomReport) bias() float64 {
	n, called := float64(r.Half[0]+r.Half[1]), float64(r.CalledOf[0]+r.CalledOf[1])
	if n < 2 || called == 0 || called == n {
		return 0
	}
	share := float64(r.Half[0]) / n
	return math.Abs(float64(r.CalledOf[0])-called*share) /
		math.Sqrt(called*share*(1-share)*(n-called)/(n-1))
}

// mostBias is exceeded by chance in one of 16,000 fair draws.
const mostBias = 4

// Err names every promise that the room, or the sale behind it, broke.
func (r *RoomReport) Err() error {
	var broken []error
	shop := r.Settled.over(r.Shop)
	for _, c := range []struct {
		wrong  bool
		format string
		values []any
	}{
		{r.Failed != nil, "ask: %w", []any{r.Failed}},
		{shop.Oversold != 0, "oversold %d: %d orders for %d units", []any{shop.Oversold, shop.Orders, shop.Units}},
		{shop.Twice != 0, "sold twice: %d people have more than one order", []any{shop.Twice}},
		{r.Shop.Again != 0, "sent twice: %d orders came to the shop more than once", []any{r.Shop.Again}},
		{r.Unjust != 0, "%d times people were called while nothing was free", []any{r.Unjust}},
		{r.Wrong != 0, "%d people were called otherwise than the record of the draw says", []any{r.Wrong}},
		{r.bias() > mostBias, "of the first half %d of %d were called, and %d of %d of the second: that is no chance",
			[]any{r.CalledOf[0], r.Half[0], r.CalledOf[1], r.Half[1]}},
		{!r.Interrupted && r.unaccountable != 0, "%d people were neither called nor heard the end", []any{r.unaccountable}},
	} {
		if c.wrong {
			broken = append(broken, fmt.Errorf(c.format, c.values...))
		}
	}
	return errors.Join(broken...)
}

// Write writes ten lines and the verdict.
func (r *RoomReport) Write(w io.Writer) error {
	var b strings.Builder
	line := func(label, value string) { fmt.Fprintf(&b, "  %-34s%18s\n", label, value) }
	line(count(r.People+r.Late)+" people, by a draw", seconds(r.Took))
	line("joined before the start", count(r.People))
	line("called", count(r.Called))
	line("  of the first half to join", fmt.Sprintf("%s of %s", count(r.CalledOf[0]), count(r.Half[0])))
	line("  of the second half", fmt.Sprintf("%s of %s", count(r.CalledOf[1]), count(r.Half[1])))
	line("  did not come", count(r.Absent))
	line("  found nothing left", count(r.InVain))
	line("waited, and were told of the end", count(r.Over))
	shop := r.Settled.over(r.Shop)
	line("orders in the shop", fmt.Sprintf("%s of %s", count(shop.Orders), count(shop.Units)))
	line("  oversold", count(shop.Oversold))
	line("calls while nothing was free", count(r.Unjust))
	b.WriteString(r.verdict())
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *RoomReport) verdict() string {
	if err := r.Err(); err != nil {
		return "BROKEN: " + strings.ReplaceAll(err.Error(), "\n", "\nBROKEN: ") + "\n"
	}
	if r.Interrupted {
		return "Stopped early; this is what happened so far.\n" + r.Settled.String()
	}
	return fmt.Sprintf("People were called while units were free alone; joining first was no advantage.\n"+
		"The published record of the draw proves %s places.\n%s", count(r.Verified), r.Settled)
}
