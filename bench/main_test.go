package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The benchmark starts itself again as a bare server: then the test binary is one.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "serve" {
		main()
		return
	}
	code := m.Run()
	if all := children(); all != "" {
		fmt.Fprintln(os.Stderr, "processes are left:", all)
		code = 1
	}
	os.Exit(code)
}

// nightly skips a test that starts gates and loads them, unless SLUICE_NIGHTLY is set, as make nightly does.
func nightly(t *testing.T) {
	t.Helper()
	if os.Getenv("SLUICE_NIGHTLY") == "" {
		t.Skip("make nightly runs it: it loads the machine")
	}
}

// needs skips a test where something is missing, or fails it where the environment has CI set.
func needs(t *testing.T, missing string) {
	t.Helper()
	switch {
	case missing == "":
	case os.Getenv("CI") != "":
		t.Fatal(missing)
	default:
		t.Skip(missing)
	}
}

// There is not a number here that a slow machine could miss: every gate must give the answers of its load.
func TestBench_QuickRunMeasuresGatesThatAnswerRightly(t *testing.T) {
	nightly(t)
	t.Parallel()
	needs(t, missing())
	for page, args := range map[string]string{
		"RESULTS.md": "-only pass,limited,gone,reserve-once,latency,idle -gates nginx,sluice,bare -quick",
		"SCALE.md":   "scale -only connections,routes,sale,idle -quick",
	} {
		dir := t.TempDir()
		p, err := readPlan(append(strings.Fields(args), "-out", dir))
		if err != nil {
			t.Fatal(err)
		}
		groups, r := played(t, p)
		for _, g := range groups {
			for _, one := range g.trials {
				if len(r[cell{g.name, one.row, one.at}]) != 1 {
					t.Errorf("%s, %s at %d was not measured once", g.name, one.row, one.at)
				}
			}
		}
		if text, err := os.ReadFile(filepath.Join(dir, page)); err != nil || !strings.Contains(string(text), "CPU µs a ") {
			t.Errorf("%s has no CPU: %v\n%s", page, err, text)
		}
	}
}

// played runs a plan to its end.
func played(t *testing.T, p plan) ([]group, results) {
	t.Helper()
	f, err := newField(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if err := f.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	groups := f.groups()
	r, err := f.measure(t.Context(), groups)
	if err == nil {
		err = p.report(groups, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return groups, r
}

// children are the processes that this one has started and that are still there.
func children() (all string) {
	files, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is a good one
	for _, file := range files {
		text, _ := os.ReadFile(file) // a thread may have ended
		all += string(text)
	}
	return all
}

func TestBench_InterruptedRunLeavesNothingBehind(t *testing.T) {
	nightly(t)
	p, err := readPlan([]string{"-quick", "-binary", "/nonexistent"})
	if err != nil {
		t.Fatal(err)
	}
	needs(t, missing())
	f, err := newField(p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	err = f.prepare(ctx)
	interrupt()
	f.close()
	if err != nil {
		t.Fatal(err)
	}
	if all := children(); all != "" {
		t.Errorf("processes are left: %s", all)
	}
	if _, err := os.Stat(f.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
}

func TestBench_PlanRefusesWhatThereIsNot(t *testing.T) {
	for _, args := range []string{"-only=pas", "-gates=apache", "-connections=64,many", "-connections=0", "-span=0s",
		"-rounds=0", "-quicker"} {
		if _, err := readPlan([]string{args}); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
}

func TestBench_PlotIsXML(t *testing.T) {
	r, g := results{}, group{name: "gone", title: "sold <out>", along: "connections", per: "request"}
	for i, gate := range []string{"nginx", "sluice", "bare"} {
		g.trials = append(g.trials, trial{row: gate, at: 64, gate: gate})
		r[cell{"gone", gate, 64}] = []sample{{gateCPU: float64(1 + i)}}
	}
	picture := string(g.plot(r))
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"sluice · 64", ">2.00<", ">3.00<"} {
		if !strings.Contains(picture, want) {
			t.Errorf("%q is missing in\n%s", want, picture)
		}
	}
}

func TestBench_TableIsAlignedMarkdown(t *testing.T) {
	var got table
	got.row("gate", "µs")
	got.row("Sluice", number(9.5))
	const want = "| gate   | µs   |\n| ------ | ---- |\n| Sluice | 9.50 |\n"
	if fmt.Sprint(&got) != want {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
}

func TestLoad_BurstIsReadFromWhatWrkWrites(t *testing.T) {
	b, err := readBurst("Running 1s test\n  Non-2xx or 3xx responses: 7\nmeasured 1000 2000000 900 4100 7 1\n")
	want := burst{requests: 1000, took: 2 * time.Second, p50: 900 * time.Microsecond, p99: 4100 * time.Microsecond,
		rejected: 7, broken: 1}
	if err != nil || b != want {
		t.Errorf("got %+v, %v", b, err)
	}
	for _, text := range []string{"", "unable to connect", "measured 1 2 3"} {
		if _, err := readBurst(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestLoad_WrongAnswersAreNoMeasurement(t *testing.T) {
	pass, gone, sale := scenario{name: "pass"}, scenario{name: "gone", rejected: true}, scenario{name: "sale", mixed: true}
	for _, c := range []struct {
		s     scenario
		b     burst
		right bool
	}{
		{pass, burst{requests: 1000}, true},
		{pass, burst{requests: 1000, rejected: 500}, false},
		{pass, burst{requests: 1000, broken: 500}, false},
		{pass, burst{}, false},
		{gone, burst{requests: 1000, rejected: 999}, true},
		{gone, burst{requests: 1000}, false},
		{sale, burst{requests: 1000, rejected: 500}, true},
	} {
		if err := c.b.is(c.s); (err == nil) != c.right {
			t.Errorf("%s %+v: %v", c.s.name, c.b, err)
		}
	}
}

// A ratio is to the better peer at the same number of connections, or to the first point of a curve.
func TestBench_RatioIsToTheBestPeerOrTheFirst(t *testing.T) {
	r := results{}
	g := group{name: "g", ratio: "of the best peer"}
	for i, c := range []trial{{row: "nginx", at: 64, gate: "nginx"}, {row: "HAProxy", at: 64, gate: "haproxy"},
		{row: "Sluice", at: 64, gate: "sluice"}, {row: "Sluice", at: 512, gate: "sluice"}} {
		g.trials = append(g.trials, c)
		r[cell{"g", c.row, c.at}] = []sample{{gateCPU: []float64{8, 10, 12, 18}[i]}}
	}
	if got := middle(g.ratios(r, g.trials[2])); got != 1.5 {
		t.Errorf("to the best peer %v, want 1.5", got)
	}
	g.ratio = "of the first"
	if got := middle(g.ratios(r, g.trials[3])); got != 1.5 {
		t.Errorf("to the first %v, want 1.5", got)
	}
}

// With one connection and 200 requests a second, a stall of half a second hits the one that stalls and all that were
// due meanwhile. A closed loop would see one.
func TestLatency_CountsFromTheInstantARequestWasDue(t *testing.T) {
	nightly(t)
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if n.Add(1) == 3 {
			time.Sleep(500 * time.Millisecond) // the shop is slow here, no test waits
		}
	}))
	defer s.Close()
	f := &field{plan: plan{quick: true, span: time.Second}}
	a, err := f.steady(t.Context(), &gate{front: s.Listener.Addr().String()}, 1)
	if err != nil || a.requests != 200 || a.p99 < 250 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestLatency_WrongAnswersAndBrokenConnectionsAreNone(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"404": http.NotFound,
		"a connection that breaks": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }} {
		s := httptest.NewServer(answer)
		f := &field{plan: plan{quick: true, span: 500 * time.Millisecond}}
		if _, err := f.steady(t.Context(), &gate{front: s.Listener.Addr().String()}, 2); err == nil {
			t.Errorf("%s is taken for an answer", name)
		}
		s.Close()
	}
}
