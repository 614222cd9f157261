package main

import (
	"fmt"
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

// report prints what was measured, writes it down where the plan says so, and judges it.
func (p plan) report(r results) error {
	text, err := p.document(r)
	if err != nil {
		return err
	}
	fmt.Print(text.body)
	if p.out != "" {
		if err := p.publish(r, text.body); err != nil {
			return err
		}
	}
	if text.lost {
		return errMissed
	}
	return nil
}

// document is the report, and whether it is a bad one.
type document struct {
	body string
	lost bool
}

func (p plan) document(r results) (d document, err error) {
	var out strings.Builder
	fmt.Fprintf(&out, "`%s`\n\n%s\n", strings.TrimSpace(p.command), machine(p, r))
	if t := scenarioTable(r); len(t.rows) > 1 {
		fmt.Fprintf(&out, "## Scenarios\n\n%s\n", &t)
	}
	if t := extraTable(r); len(t.rows) > 1 {
		fmt.Fprintf(&out, "## Beside them\n\n%s\n", &t)
	}
	wanted, err := readTargets(p.targets)
	if err != nil {
		return d, err
	}
	t, lost := targetTable(r, wanted.Target)
	if d.lost = lost; len(t.rows) > 1 {
		fmt.Fprintf(&out, "## Targets\n\n%s\n", &t)
	}
	d.body = out.String()
	return d, nil
}

// publish writes RESULTS.md and its plots.
func (p plan) publish(r results, body string) error {
	var pictures strings.Builder
	for _, c := range connectionsOf(r) {
		name := fmt.Sprintf("cpu-%d.svg", c)
		if err := os.WriteFile(filepath.Join(p.out, name), plot(r, c), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&pictures, "![CPU a request at %d connections, of the best peer's](%s)\n", c, name)
	}
	text := resultsHead + pictures.String() + "\n" + body
	return os.WriteFile(filepath.Join(p.out, "RESULTS.md"), []byte(text), 0o644)
}

const resultsHead = `# Sluice beside its peers

` + "`make bench`" + ` writes this page; [README.md](README.md) says what each scenario is and how it is
measured. CPU is that of all processes of the gate; numbers are medians of the rounds ± half of what their middle half
spans; a ratio is to the better of nginx and HAProxy, round by round.

`

// connectionsOf are the numbers of connections that scenarios ran with.
func connectionsOf(r results) []int {
	var all []int
	for _, s := range scenarios() {
		for c := range r {
			if c.scenario == s.name && !slices.Contains(all, c.connections) {
				all = append(all, c.connections)
			}
		}
	}
	slices.Sort(all)
	return all
}

func scenarioTable(r results) table {
	var t table
	t.row("scenario", "connections", "gate", "requests/s", "p50 ms", "p99 ms", "CPU µs/request", "of the best", "Redis µs",
		"calls/request", "PSS MiB")
	for _, s := range scenarios() {
		for _, connections := range connectionsOf(r) {
			for _, k := range gateKinds() {
				c := cell{s.name, k.name, connections}
				if len(r[c]) == 0 {
					continue
				}
				m := func(m measure) string { return number(middle(r.values(c, m))) }
				t.row(s.name, strconv.Itoa(connections), k.title, m(requests), m(median), m(slow), spread(r.values(c, gateCPU)),
					number(middle(r.toBest(c, gateCPU))), m(redisCPU), m(calls), m(memory))
			}
		}
	}
	return t
}

// extraTable is one line for each number, since they have little in common.
func extraTable(r results) table {
	var t table
	t.row("what", "connections", "gate", "p50 ms", "p99 ms", "p99.9 ms", "CPU µs/request", "PSS MiB", "KiB each", "ready ms",
		"binary MB", "Redis calls")
	for _, name := range extraNames() {
		for _, c := range cellsOf(r, name) {
			m := func(m measure) string { return number(middle(r.values(c, m))) }
			t.row(name, strconv.Itoa(c.connections), titleOf(c.gate), m(median), spread(r.values(c, slow)),
				spread(r.values(c, slowest)), m(gateCPU), m(memory), m(each),
				m(startup), m(size), m(calls))
		}
	}
	return t
}

// cellsOf are those of one scenario, by connections and then in the order of the gates.
func cellsOf(r results, scenario string) []cell {
	order := names(gateKinds())
	var all []cell
	for c := range r {
		if c.scenario == scenario {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b cell) int {
		if a.connections != b.connections {
			return a.connections - b.connections
		}
		return slices.Index(order, a.gate) - slices.Index(order, b.gate)
	})
	return all
}

func titleOf(gate string) string {
	for _, k := range gateKinds() {
		if k.name == gate {
			return k.title
		}
	}
	return gate
}

// targetTable is the verdicts; lost tells that one of them fails the run.
func targetTable(r results, all []target) (t table, lost bool) {
	t.row("target", "connections", "wanted", "got", "")
	for _, each := range all {
		for _, v := range each.compare(r) {
			t.row(v.What, strconv.Itoa(v.connections), v.wanted(), spread(v.values), v.end())
			lost = lost || v.lost
		}
	}
	return t, lost
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

// machine says in a few words where a run took place, and with what.
func machine(p plan, r results) string {
	most := 0
	for _, rounds := range r {
		most = max(most, len(rounds))
	}
	return ground() + fmt.Sprintf("%d rounds of %d s; the load, the shop, Redis and the gate share the cores.\n", most,
		p.seconds)
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
