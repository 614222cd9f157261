package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"
)

// measure names a number that is compared, and its unit.
type measure string

// What is measured. Where less is better, which is everywhere but for requests, a ratio above 1 is a loss.
const (
	requests measure = "rate"      // a second
	median   measure = "p50"       // ms
	slow     measure = "p99"       // ms
	slowest  measure = "p999"      // ms; of the constant rate alone
	gateCPU  measure = "cpu"       // µs of the gate's processes a request
	redisCPU measure = "redis_cpu" // µs of Redis a request
	calls    measure = "calls"     // of Redis a request; in all, of the million
	memory   measure = "pss"       // MiB of the gate's processes
	each     measure = "kib_each"  // KiB of a waiting connection
	startup  measure = "ready_ms"  // from the start of the process to the first answer
	size     measure = "mb"        // of the binary, 10^6 bytes
)

// sample is what one round tells of one cell.
type sample map[measure]float64

func (s sample) String() string {
	return fmt.Sprintf("%8.0f/s  p50 %6.2f ms  p99 %6.2f ms  cpu %6.2f µs  redis %6.2f µs  calls %7.4f  %5.1f MiB",
		s[requests], s[median], s[slow], s[gateCPU], s[redisCPU], s[calls], s[memory])
}

// cell is a place in the table.
type cell struct {
	scenario, gate string
	connections    int
}

// results are the rounds of each cell.
type results map[cell][]sample

func (r results) add(c cell, s sample) { r[c] = append(r[c], s) }

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

// reading is what the counters say at one instant.
type reading struct {
	gate, redis time.Duration // of a processor
	calls       int64
	memory      int64 // bytes
}

// readCounters reads all counters.
func (f *field) readCounters(ctx context.Context, g *gate, s scenario) (l reading, err error) {
	family := g.family()
	if l.gate, err = processor(family); err != nil {
		return l, err
	}
	if l.redis, err = processor(f.redis.family()); err != nil {
		return l, err
	}
	if l.memory, err = share(family); err != nil {
		return l, err
	}
	l.calls, err = f.redis.calls(ctx, s.name == "check")
	return l, err
}

// sampled divides what was used by the requests that used it.
func sampled(b burst, before, after reading, s scenario) sample {
	n := float64(b.requests)
	got := sample{
		requests: n / b.took.Seconds(),
		median:   b.p50.Seconds() * 1e3,
		slow:     b.p99.Seconds() * 1e3,
		gateCPU:  (after.gate - before.gate).Seconds() * 1e6 / n,
		memory:   float64(after.memory) / (1 << 20),
	}
	if s.redis {
		got[redisCPU] = (after.redis - before.redis).Seconds() * 1e6 / n
		got[calls] = float64(after.calls-before.calls) / n
	}
	return got
}

// A run may be taken in pieces, where the machine cannot be had alone for a quarter of an hour: each adds its rounds to
// a file.

// row is a cell as the file has it.
type row struct {
	Scenario    string   `json:"scenario"`
	Gate        string   `json:"gate"`
	Connections int      `json:"connections"`
	Rounds      []sample `json:"rounds"`
}

// kept reads the rounds of earlier pieces; none where there is no file yet.
func (p plan) kept() (results, error) {
	r := results{}
	if p.rounded == "" {
		return r, nil
	}
	text, err := os.ReadFile(p.rounded)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	var rows []row
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", p.rounded, err)
	}
	for _, each := range rows {
		r[cell{each.Scenario, each.Gate, each.Connections}] = each.Rounds
	}
	return r, nil
}

// writeRounds writes all rounds.
func (p plan) writeRounds(r results) error {
	if p.rounded == "" {
		return nil
	}
	var rows []row
	for _, scenario := range append(names(scenarios()), extraNames()...) {
		for _, c := range cellsOf(r, scenario) {
			rows = append(rows, row{c.scenario, c.gate, c.connections, r[c]})
		}
	}
	text, err := json.MarshalIndent(rows, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(p.rounded, append(text, '\n'), 0o644)
}
