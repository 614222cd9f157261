package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/BurntSushi/toml"
)

// target is what Sluice has to reach in one measure of one scenario.
type target struct {
	What        string  `toml:"what"`
	Scenario    string  `toml:"scenario"`
	Measure     measure `toml:"measure"`
	Connections []int   `toml:"connections"` // empty = all that were measured
	Against     string  `toml:"against"`     // the gate to divide by, or "best" of the rivals; "" = the number itself
	Of          string  `toml:"of"`          // the scenario to divide by; "" = the same
	AtMost      float64 `toml:"at_most"`
	AtLeast     float64 `toml:"at_least"`
	// the best that work has reached where that is not enough; NOTES.md says why. 0 = none
	Reached float64 `toml:"reached"`
}

// verdict is how Sluice did on one target, at one number of connections.
type verdict struct {
	target
	connections int
	values      []float64 // one a round
	got, noise  float64
	missed      bool // the target, by more than the noise
	lost        bool // and also what had been reached before
}

// goals are what the file wants.
type goals struct {
	Target []target `toml:"target"` // of make bench
	Growth []growth `toml:"growth"` // of make bench-scale
}

// readTargets reads the file, or nothing where there is none; a target that nothing can decide is an error.
func readTargets(file string) (g goals, err error) {
	if file == "" {
		return g, nil
	}
	read, err := toml.DecodeFile(file, &g)
	if err != nil {
		return g, fmt.Errorf("read targets: %w", err)
	}
	if odd := read.Undecoded(); len(odd) > 0 {
		return g, fmt.Errorf("read targets: %s: no such key", odd[0])
	}
	for _, t := range g.Target {
		if err := t.check(); err != nil {
			return g, fmt.Errorf("read targets: %q: %w", t.What, err)
		}
	}
	for _, t := range g.Growth {
		if err := t.check(); err != nil {
			return g, fmt.Errorf("read targets: growth of %q: %w", t.Curve, err)
		}
	}
	return g, nil
}

func (t target) check() error {
	known := append(names(scenarios()), extraNames()...)
	switch {
	case !slices.Contains(known, t.Scenario) || t.Of != "" && !slices.Contains(known, t.Of):
		return errors.New("no scenario is called so")
	case !slices.Contains([]measure{requests, median, slow, slowest, gateCPU, redisCPU, calls, memory, each, startup, size},
		t.Measure):
		return fmt.Errorf("nothing measures %q", t.Measure)
	case (t.AtMost == 0) == (t.AtLeast == 0):
		return errors.New("it has one of at_most and at_least")
	}
	return nil
}

// compare compares the results with a target, at each number of connections that was measured.
func (t target) compare(r results) []verdict {
	var all []verdict
	for c := range r {
		if c.scenario != t.Scenario || c.gate != "sluice" || len(t.Connections) > 0 &&
			!slices.Contains(t.Connections, c.connections) {
			continue
		}
		values := t.values(r, c)
		if len(values) == 0 {
			continue
		}
		v := t.verdict(values)
		v.connections = c.connections
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b verdict) int { return a.connections - b.connections })
	return all
}

// verdict is how values, one a round, do on t.
func (t target) verdict(values []float64) verdict {
	v := verdict{target: t, values: values, got: middle(values), noise: noise(values)}
	v.missed = t.short(v, t.AtMost+t.AtLeast)
	v.lost = v.missed && (t.Reached == 0 || t.short(v, t.Reached))
	return v
}

// short tells whether v is on the wrong side of a bound by more than the noise.
func (t target) short(v verdict, bound float64) bool {
	if t.AtLeast != 0 {
		return v.got+v.noise < bound
	}
	return v.got-v.noise > bound
}

// values are the numbers to judge, one a round.
func (t target) values(r results, c cell) []float64 {
	if t.Against == "" {
		return r.values(c, t.Measure)
	}
	by := cell{t.Scenario, t.Against, c.connections}
	if t.Of != "" {
		by.scenario = t.Of
	}
	if t.Against == "best" {
		by.gate = r.best(by.scenario, c.connections, t.Measure)
	}
	return r.ratios(c, by, t.Measure)
}

// wanted is the target in words.
func (t target) wanted() string {
	text := fmt.Sprintf("≤ %s", number(t.AtMost))
	if t.AtMost == 0 {
		text = fmt.Sprintf("≥ %s", number(t.AtLeast))
	}
	switch {
	case t.Against == "":
		return text
	case t.Of == "":
		return text + " × " + t.Against
	}
	return text + " × " + t.Against + "'s " + t.Of
}

// end is the verdict in a word.
func (v verdict) end() string {
	switch {
	case v.lost:
		return "**missed**"
	case v.missed:
		return "missed, as before"
	}
	return "reached"
}
