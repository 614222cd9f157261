package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// rounds is a cell of one measure.
func rounds(m measure, values ...float64) (all []sample) {
	for _, v := range values {
		all = append(all, sample{m: v})
	}
	return all
}

func TestBench_MissIsOnlyWhatExceedsTheNoise(t *testing.T) {
	cpu := target{What: "x", Scenario: "pass", Measure: gateCPU, Against: "nginx", AtMost: 1.1}
	rate := target{What: "x", Scenario: "pass", Measure: requests, Against: "nginx", AtLeast: 0.9}
	ratchet := cpu
	ratchet.Reached = 1.5
	for _, c := range []struct {
		name         string
		target       target
		ours         []float64 // nginx has 10 in each round
		missed, lost bool
	}{
		{"below", cpu, []float64{9, 10, 11}, false, false},
		{"just above, and noisy", cpu, []float64{10, 11.5, 13}, false, false},
		{"above by more than the noise", cpu, []float64{13, 13.2, 13.4}, true, true},
		{"fast enough", rate, []float64{9, 9, 9}, false, false},
		{"too slow", rate, []float64{8, 8, 8}, true, true},
		{"missed, and as good as before", ratchet, []float64{15, 15, 15}, true, false},
		{"missed, and worse than before", ratchet, []float64{16, 16, 16}, true, true},
	} {
		r := results{
			{"pass", "sluice", 64}: rounds(c.target.Measure, c.ours...),
			{"pass", "nginx", 64}:  rounds(c.target.Measure, 10, 10, 10),
		}
		got := c.target.compare(r)
		if len(got) != 1 || got[0].missed != c.missed || got[0].lost != c.lost {
			t.Errorf("%s: got %+v, want missed %v, lost %v", c.name, got, c.missed, c.lost)
		}
	}
}

// A machine that is slow in one round slows both.
func TestBench_RatiosPairRounds(t *testing.T) {
	r := results{
		{"pass", "sluice", 64}: rounds(gateCPU, 12, 120, 12),
		{"pass", "nginx", 64}:  rounds(gateCPU, 10, 100, 10),
	}
	got := r.toBest(cell{"pass", "sluice", 64}, gateCPU)
	if middle(got) != 1.2 || noise(got) != 0 {
		t.Errorf("ratios %v", got)
	}
}

func TestBench_BestRivalIsNeitherOursNorABound(t *testing.T) {
	r := results{}
	for gate, v := range map[string]float64{"sluice": 1, "bare": 2, "haproxy": 5, "nginx": 6} {
		r.add(cell{"pass", gate, 64}, sample{gateCPU: v, requests: v})
	}
	if got := r.best("pass", 64, gateCPU); got != "haproxy" {
		t.Errorf("the least processor time: %q", got)
	}
	if got := r.best("pass", 64, requests); got != "nginx" {
		t.Errorf("the most requests: %q", got)
	}
	if got := r.best("gone", 64, gateCPU); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestBench_QuantilesLieBetweenTheRounds(t *testing.T) {
	v := []float64{5, 1, 3, 2, 4}
	if middle(v) != 3 || noise(v) != 1 || quantile(v, 1) != 5 || middle([]float64{1, 2}) != 1.5 ||
		!math.IsNaN(middle(nil)) {
		t.Errorf("median %v, noise %v, most %v, of two %v, of none %v", middle(v), noise(v), quantile(v, 1),
			middle([]float64{1, 2}), middle(nil))
	}
}

func TestBench_TargetsThatNothingDecidesAreRefused(t *testing.T) {
	for _, text := range []string{
		"[[target]]\nscenario = \"pass\"\nmeasure = \"cpu\"",
		"[[target]]\nscenario = \"pass\"\nmeasure = \"cpu\"\nat_most = 1.0\nat_least = 1.0",
		"[[target]]\nscenario = \"past\"\nmeasure = \"cpu\"\nat_most = 1.0",
		"[[target]]\nscenario = \"pass\"\nmeasure = \"gpu\"\nat_most = 1.0",
		"[[target]]\nscenario = \"pass\"\nmeasure = \"cpu\"\nat_most = 1.0\nwhen = 1",
		"[[growth]]\naxis = \"skus\"\ncurve = \"sold out\"",
		"[[growth]]\naxis = \"sku\"\ncurve = \"sold out\"\nat_most = 1.15",
		"[[growth]]\naxis = \"skus\"\ncurve = \"sold\"\nat_most = 1.15",
		"[[growth]]\naxis = \"skus\"\ncurve = \"sold out\"\nagainst = \"haproxy\"\nat_most = 1.15",
		"[[target]",
	} {
		file := filepath.Join(t.TempDir(), "targets.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readTargets(file); err == nil {
			t.Errorf("taken:\n%s", text)
		}
	}
	if g, err := readTargets("targets.toml"); err != nil || len(g.Target) == 0 || len(g.Growth) == 0 {
		t.Errorf("our own: %d targets, %d of growth, %v", len(g.Target), len(g.Growth), err)
	}
}
