package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sluice/admin"
	"sluice/internal/octets"
)

// View draws a gate's status as lines of text.
type View struct {
	Width, Height int
	Admin         string // address of the gate, as --admin takes it
	colour        bool
}

// Colours that every terminal has.
const (
	good  = "32"
	bad   = "31"
	warn  = "33"
	quiet = "2"
)

// Draw is what fits. seconds are the latest, the oldest first; lost tells that these are no live numbers: "" = they
// are.
func (b View) Draw(s *admin.Status, seconds []admin.Second, lost string) string {
	var lines []string
	if lost != "" {
		lines = append(lines, b.in(bad, b.cut(lost)))
	}
	lines = append(lines, b.head(s)...)
	if s.Second != nil {
		lines = append(lines, b.traffic(s.Second, seconds)...)
	}
	for _, o := range s.Overrides {
		lines = append(lines, b.cut(fmt.Sprintf("override  %s: %s%s = %v, %v again at %s", o.ID, o.Key, o.SKU, o.Value,
			o.Before, o.Until.Local().Format(time.TimeOnly))))
	}
	if s.Second != nil {
		lines = append(lines, b.stock(s.Second)...)
	}
	if len(lines) > b.Height {
		lines = append(lines[:b.Height-1], b.in(quiet, fmt.Sprintf("… and %d lines more", len(lines)-b.Height+1)))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (b View) head(s *admin.Status) []string {
	ready, colour := "ready", good
	if !s.Ready {
		ready, colour = "NOT READY", bad
	} else if s.Degraded {
		ready, colour = "DEGRADED", warn
	}
	lines := []string{b.in(colour, b.cut(fmt.Sprintf("sluice %s on %s  %s, %s  mode %s  config %s", s.Version, s.Host,
		s.Phase, ready, s.Mode, s.Config)))}
	for _, c := range s.Checks {
		if !c.OK {
			lines = append(lines, b.in(bad, b.cut("FAIL      "+c.Name+": "+c.Detail)))
		} else if c.Degraded {
			lines = append(lines, b.in(warn, b.cut("WARN      "+c.Name+": "+c.Detail)))
		}
	}
	if !s.Reload.OK {
		lines = append(lines, b.in(bad, b.cut("reload    rejected at "+s.Reload.At.Local().Format(time.TimeOnly)+
			"; the configuration before it runs on")))
		for _, p := range s.Reload.Problems {
			lines = append(lines, b.in(bad, b.cut("          "+p.String())))
		}
	}
	return lines
}

func (b View) traffic(s *admin.Second, seconds []admin.Second) []string {
	per := func(n int64) string { return fmt.Sprintf("%.0f/s", float64(n)/max(s.Span, 0.001)) }
	rejected := s.Requests - s.Admitted
	lines := []string{
		b.cut(fmt.Sprintf("in        %s  admitted %s  rejected %s  connections %d", per(s.Requests), per(s.Admitted),
			per(rejected), s.Connections)),
		b.cut("rejected  " + b.reasons(s.Rejected, per)),
	}
	if len(s.Observed) > 0 {
		lines = append(lines, b.cut("observed  "+b.reasons(s.Observed, per)))
	}
	lines = append(lines, b.minute(seconds)...)
	limit := "no limit"
	if s.Upstream.Limit > 0 {
		limit = fmt.Sprintf("of %d", s.Upstream.Limit)
	}
	lines = append(lines,
		b.cut(fmt.Sprintf("shop      %s  p50 %gms  p99 %gms  errors %s", per(s.Upstream.Requests), s.Upstream.P50,
			s.Upstream.P99,
			per(s.Upstream.Errors))),
		b.cut(fmt.Sprintf("          in flight %d %s, queue %d, %d of %d targets up", s.Upstream.InFlight, limit,
			s.Upstream.Queue,
			s.Upstream.Up, s.Upstream.Targets)))
	if s.Unknown > 0 {
		lines = append(lines, b.in(warn, b.cut(fmt.Sprintf("unknown   %d orders: sluice reservation list --unknown "+
			"--admin %s", s.Unknown, b.Admin))))
	}
	if r := s.Redis; r != nil {
		up := "up"
		if !r.Up {
			up = "AWAY"
		}
		lines = append(lines, b.cut(fmt.Sprintf("redis     %s  %s  p50 %gms  p99 %gms  errors %s  stock readings and pings",
			up, per(r.Calls), r.P50, r.P99, per(r.Errors))))
	}
	if len(seconds) > 1 {
		lines = append(lines, b.bars("last 60 s: in", seconds, func(s *admin.Second) int64 { return s.Requests }),
			b.bars("     admitted", seconds, func(s *admin.Second) int64 { return s.Admitted }))
	}
	return lines
}

// minute are the rejections of the last minute, for a person who looks once.
func (b View) minute(seconds []admin.Second) (lines []string) {
	rejected, causes, observed := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for i := range seconds[max(0, len(seconds)-60):] {
		s := &seconds[max(0, len(seconds)-60)+i]
		addCounts(rejected, s.Rejected)
		addCounts(rejected, s.RejectedConnections)
		addCounts(causes, s.Causes)
		addCounts(observed, s.Observed)
	}
	all := func(n int64) string { return strconv.FormatInt(n, 10) }
	if len(rejected) > 0 {
		lines = append(lines, b.cut("in 60 s   rejected: "+b.reasons(rejected, all)))
	}
	if len(causes) > 0 {
		lines = append(lines, b.cut("          causes: "+b.reasons(causes, all)))
	}
	if len(observed) > 0 {
		lines = append(lines, b.cut("in 60 s   would be rejected: "+b.reasons(observed, all)))
	}
	return lines
}

func addCounts(to, from map[string]int64) {
	for name, n := range from {
		to[name] += n
	}
}

// reasons are those with the most rejections, first.
func (b View) reasons(counts map[string]int64, per func(int64) string) string {
	if len(counts) == 0 {
		return "none in the last second"
	}
	names := slices.SortedFunc(maps.Keys(counts),
		func(x, y string) int { return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y)) })
	for i, name := range names {
		names[i] = name + " " + per(counts[name])
	}
	return strings.Join(names, "  ")
}

// bars is the last minute as a row of letters from "." (none) to "#" (the most of this minute), which any terminal
// shows.
func (b View) bars(name string, seconds []admin.Second, of func(*admin.Second) int64) string {
	const levels = ".:-=+*%#"
	seconds = seconds[max(0, len(seconds)-60):]
	most := int64(1)
	for i := range seconds {
		most = max(most, of(&seconds[i]))
	}
	row := make([]byte, len(seconds))
	for i := range seconds {
		row[i] = levels[of(&seconds[i])*int64(len(levels)-1)/most]
	}
	return b.in(quiet, b.cut(fmt.Sprintf("%s %s (# = %d/s)", name, row, most)))
}

// stock says so where Redis does not answer: the gate can then only repeat what it said before.
func (b View) stock(of *admin.Second) (lines []string) {
	all, name := of.Stock, "stock"
	if len(all) == 0 {
		return nil
	}
	if of.Redis != nil && !of.Redis.Up {
		name = "OLD STOCK (Redis away)"
	}
	lines = []string{b.cut(fmt.Sprintf("%-24s %10s %10s %10s %10s", name, "total", "held", "sold", "free"))}
	for _, s := range all {
		lines = append(lines, b.cut(fmt.Sprintf("%-24s %10d %10d %10d %10d", plainText(s.SKU), s.Total, s.Held, s.Sold,
			s.Free)))
	}
	return lines
}

// cut keeps a line on its line, and what it says from commanding the terminal.
func (b View) cut(line string) string {
	line = plainText(line)
	if utf8.RuneCountInString(line) > b.Width {
		return string([]rune(line)[:b.Width-1]) + "…"
	}
	return line
}

func plainText(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || octets.IsBidiControl(c) {
			return '?'
		}
		return c
	}, text)
}

// in is text in a colour, where there are any.
func (b View) in(colour, text string) string {
	if !b.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
