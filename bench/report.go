package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// measure names a number, and its unit.
type measure string

// What is measured; {per} is what costs are given for.
const (
	requests measure = "requests/s"
	median   measure = "p50 ms"
	slow     measure = "p99 ms"
	gateCPU  measure = "CPU µs a {per}"
	redisCPU measure = "Redis µs a {per}"
	calls    measure = "Redis calls a {per}"
	memory   measure = "PSS MiB"
	each     measure = "KiB each"
	startup  measure = "ready ms" // from the start of the process to the first answer
)

func measures() []measure {
	return []measure{requests, median, slow, gateCPU, redisCPU, calls, memory, each, startup}
}

// sample is what one round tells of one cell.
type sample map[measure]float64

func (s sample) String() string {
	return fmt.Sprintf("%8.0f/s  p50 %6.2f ms  p99 %6.2f ms  cpu %6.2f µs  redis %6.2f µs  calls %7.4f  %5.1f MiB",
		s[requests], s[median], s[slow], s[gateCPU], s[redisCPU], s[calls], s[memory])
}

// values are those of one measure, round by round.
func (r results) values(c cell, m measure) []float64 {
	var all []float64
	for _, s := range r[c] {
		if v, ok := s[m]; ok {
			all = append(all, v)
		}
	}
	return all
}

// middle is the median; NaN of nothing.
func middle(values []float64) float64 { return quantile(values, 0.5) }

// noise is half of what the middle half of the rounds spans.
func noise(values []float64) float64 { return (quantile(values, 0.75) - quantile(values, 0.25)) / 2 }

// quantile is the value below which q of the values lie, between two of them where it must be.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 == len(sorted) {
		return sorted[low]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// ratios divide the CPU of a trial by that of the one it is compared with, round by round, so that what slows the
// machine for a while slows both: by the better peer at the same number, or the first trial of its row.
func (g group) ratios(r results, t trial) (all []float64) {
	base, least := cell{}, math.Inf(1)
	for _, o := range g.trials {
		c := cell{g.name, o.row, o.at}
		if v := middle(r.values(c, gateCPU)); g.ratio == "of the first" && o.row == t.row {
			base = c
			break
		} else if g.ratio != "of the first" && rival(o.gate) && o.at == t.at && v < least {
			base, least = c, v
		}
	}
	of, by := r.values(cell{g.name, t.row, t.at}, gateCPU), r.values(base, gateCPU)
	for i := range min(len(of), len(by)) {
		if by[i] != 0 {
			all = append(all, of[i]/by[i])
		}
	}
	return all
}

const pageHead = `# %s

This program writes this page and its plots; [README.md](README.md) says what is measured, and how. CPU is that of all
processes of the gate, kernel time included. Numbers are medians of the rounds ± half of what their middle half spans;
a ratio of CPU is taken round by round.

` + "`%s`" + `

%s%d rounds of %s; the load, the shop, Redis and the gate share the cores.

`

// page says what a run measured.
func (p plan) page(groups []group, r results) string {
	var out strings.Builder
	title := "Sluice beside its peers"
	if p.scale {
		title = "How cost grows, measured"
	}
	fmt.Fprintf(&out, pageHead, title, p.command, ground(), p.rounds, p.span)
	for _, g := range groups {
		fmt.Fprintf(&out, "## %s: %s\n\n", g.name, g.title)
		if p.out != "" {
			fmt.Fprintf(&out, "![CPU of %s](%s)\n\n", g.name, p.picture(g))
		}
		fmt.Fprintf(&out, "%s\n", g.table(r))
	}
	return out.String()
}

// picture is the file of a group's plot.
func (p plan) picture(g group) string {
	if p.scale {
		return "scale-" + g.name + ".svg"
	}
	return "cpu-" + g.name + ".svg"
}

// report prints what was measured, and writes it down where the plan says so.
func (p plan) report(groups []group, r results) error {
	text := p.page(groups, r)
	fmt.Print(text)
	if p.out == "" {
		return nil
	}
	for _, g := range groups {
		if err := os.WriteFile(filepath.Join(p.out, p.picture(g)), g.plot(r), 0o644); err != nil {
			return err
		}
	}
	name := "RESULTS.md"
	if p.scale {
		name = "SCALE.md"
	}
	return os.WriteFile(filepath.Join(p.out, name), []byte(text), 0o644)
}

// table has a line for each trial, and a column for each measure that one of them has.
func (g group) table(r results) *table {
	all := slices.DeleteFunc(measures(), func(m measure) bool {
		return !slices.ContainsFunc(g.trials, func(t trial) bool {
			return middle(r.values(cell{g.name, t.row, t.at}, m)) > 0
		})
	})
	var t table
	head := []string{"", g.along}
	for _, m := range all {
		if head = append(head, strings.ReplaceAll(string(m), "{per}", g.per)); m == gateCPU {
			head = append(head, g.ratio)
		}
	}
	t.row(head...)
	for _, one := range g.trials {
		c := cell{g.name, one.row, one.at}
		row := []string{one.row, strconv.Itoa(one.at)}
		for _, m := range all {
			if row = append(row, spread(r.values(c, m))); m == gateCPU {
				row = append(row, number(middle(g.ratios(r, one))))
			}
		}
		t.row(row...)
	}
	return &t
}

// The plot's measures, in pixels.
const (
	plotWidth  = 760
	plotLeft   = 250 // where bars begin
	plotBar    = 14
	plotTop    = 34
	plotLength = plotWidth - plotLeft - 60
)

// plot draws the processor time of each trial as a bar: shorter is better.
func (g group) plot(r results) []byte {
	var bars strings.Builder
	most, y := 1e-9, plotTop
	for _, t := range g.trials {
		most = max(most, middle(r.values(cell{g.name, t.row, t.at}, gateCPU)))
	}
	for i, t := range g.trials {
		v := middle(r.values(cell{g.name, t.row, t.at}, gateCPU))
		if math.IsNaN(v) {
			continue
		}
		if i > 0 && g.trials[i-1].row != t.row {
			y += plotBar / 2
		}
		fill := map[bool]string{true: "#1f77b4", false: "#999999"}[t.gate == "sluice"]
		fmt.Fprintf(&bars, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s · %d</text>\n<rect x=\"%d\" y=\"%d\" "+
			"width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n<text x=\"%.1f\" y=\"%d\">%s</text>\n", plotLeft-6, y+11,
			html.EscapeString(t.row), t.at, plotLeft, y, v/most*plotLength, plotBar, fill, plotLeft+v/most*plotLength+4, y+11,
			number(v))
		y += plotBar + 3
	}
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"
 font-family="sans-serif" font-size="11">
<rect width="100%%" height="100%%" fill="white"/>
<text x="10" y="20" font-size="13">CPU, µs a %s: %s; by %s</text>
%s</svg>
`, plotWidth, y+plotBar, g.per, html.EscapeString(g.title), g.along, bars.String())
}

// table is a Markdown table whose columns are also aligned for a terminal.
type table struct {
	rows [][]string // the first is the head
}

func (t *table) row(columns ...string) { t.rows = append(t.rows, columns) }

func (t *table) String() string {
	wide := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, text := range row {
			wide[i] = max(wide[i], utf8.RuneCountInString(text), 3)
		}
	}
	var out strings.Builder
	for n, row := range t.rows {
		for i, text := range row {
			pad := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(text))
			out.WriteString("| " + text + pad + " ")
		}
		out.WriteString("|\n")
		if n == 0 {
			for _, w := range wide {
				out.WriteString("| " + strings.Repeat("-", w) + " ")
			}
			out.WriteString("|\n")
		}
	}
	return out.String()
}

// number writes three digits that count; "–" for what was not measured.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// spread writes a median with its noise.
func spread(values []float64) string {
	if len(values) < 2 {
		return number(middle(values))
	}
	return number(middle(values)) + " ± " + number(noise(values))
}

// ground is the machine and what is installed on it.
func ground() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, %d cores (%s), %s, %s; load average %s.\n", time.Now().UTC().Format("2006-01-02"),
		runtime.NumCPU(),
		after(contents("/proc/cpuinfo"), "model name\t: "), "Linux "+contents("/proc/sys/kernel/osrelease"),
		runtime.Version(),
		firstWord(contents("/proc/loadavg")))
	var versions []string
	for _, v := range [][]string{{"nginx", "-v"}, {"haproxy", "-v"}, {"redis-server", "--version"}, {"wrk", "-v"}} {
		text, _ := exec.Command(v[0], v[1:]...).CombinedOutput() // wrk ends with 1
		if line, _, _ := strings.Cut(string(text), "\n"); line != "" {
			versions = append(versions, shorten(line))
		}
	}
	fmt.Fprintf(&out, "%s.\n", strings.Join(versions, "; "))
	return out.String()
}

func contents(file string) string {
	text, _ := os.ReadFile(file)
	return strings.TrimSpace(string(text))
}

// after is the rest of the line behind a word.
func after(text, word string) string {
	_, rest, _ := strings.Cut(text, word)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// shorten keeps the beginning of what a program says of its version.
func shorten(line string) string {
	line = strings.TrimPrefix(line, "nginx version: ")
	for _, from := range []string{" sha=", " Copyright", " 20", " - http"} {
		line, _, _ = strings.Cut(line, from)
	}
	return line
}
