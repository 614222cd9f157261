package main

import "math"

// rivals are those whom somebody would use instead of Sluice; bare fasthttp is no gate.
func rivals() []string { return []string{"nginx", "haproxy"} }

// ratios divides one cell by another round by round, so that what slows the machine for a while slows both.
func (r results) ratios(a, b cell, m measure) []float64 {
	of, by := r.values(a, m), r.values(b, m)
	var all []float64
	for i := range min(len(of), len(by)) {
		if by[i] != 0 {
			all = append(all, of[i]/by[i])
		}
	}
	return all
}

// best is the rival with the best median of a measure; "" where none was measured.
func (r results) best(scenario string, connections int, m measure) string {
	name, least := "", math.Inf(1)
	for _, rival := range rivals() {
		v := middle(r.values(cell{scenario, rival, connections}, m))
		if m == requests {
			v = -v
		}
		if v < least { // false for NaN
			name, least = rival, v
		}
	}
	return name
}

// toBest are the ratios of a cell to the best rival of its scenario.
func (r results) toBest(c cell, m measure) []float64 {
	best := r.best(c.scenario, c.connections, m)
	if best == "" {
		return nil
	}
	return r.ratios(c, cell{c.scenario, best, c.connections}, m)
}
