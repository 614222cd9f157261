package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// There is not a number here that a slow machine could miss: every gate must give the answers of its scenario.
func TestBench_QuickRunMeasuresGatesThatAnswerRightly(t *testing.T) {
	nightly(t)
	t.Parallel()
	dir := t.TempDir()
	p, err := readPlan([]string{"-quick", "-scenarios", "pass,limited,gone,reserve-once", "-gates", "nginx,sluice,bare",
		"-extras", "latency,idle,start", "-rate", "200", "-out", dir, "-rounded", filepath.Join(dir, "rounds.json")})
	if err != nil {
		t.Fatal(err)
	}
	needs(t, p.missing())
	r := played(t, p)
	for _, c := range []cell{{"pass", "sluice", 64}, {"limited", "bare", 64}, {"limited", "nginx", 64},
		{"gone", "sluice", 64},
		{"reserve-once", "sluice", 64}, {"latency", "nginx", 64}, {"idle", "sluice", 200}, {"start", "sluice", 0}} {
		if len(r[c]) != 1 {
			t.Errorf("%v was measured %d times", c, len(r[c]))
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
	if err != nil || !strings.Contains(string(text), "| reserve-once | 64 ") {
		t.Errorf("RESULTS.md has no line of an order: %v\n%s", err, text)
	}
	if again, err := p.kept(); err != nil || len(again) != len(r) {
		t.Errorf("the rounds that were kept: %d cells and %v, want %d", len(again), err, len(r))
	}
}

// played runs a plan to its end.
func played(t *testing.T, p plan) results {
	t.Helper()
	f, err := newField(p)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	r, err := f.measure(t.Context())
	if err == nil {
		err = p.report(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
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
	needs(t, p.missing())
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
	for _, args := range []string{"-scenarios=pas", "-gates=apache", "-extras=luck", "-connections=64,many",
		"-connections=0", "-seconds=0", "-quicker"} {
		if _, err := readPlan([]string{args}); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
}

func TestBench_PlotIsXML(t *testing.T) {
	r := results{}
	for i, gate := range []string{"nginx", "sluice", "bare"} {
		r.add(cell{"gone", gate, 64}, sample{gateCPU: float64(1 + i)})
	}
	picture := string(plot(r, 64))
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"gone · Sluice", ">2.00<", ">3.00<"} {
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
