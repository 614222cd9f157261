package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// growth is by how much a request of a curve may be dearer at its end than at its beginning.
type growth struct {
	Axis    string  `toml:"axis"`
	Curve   string  `toml:"curve"`
	Against string  `toml:"against"` // the curve of the axis whose growth to divide by; "" = the number itself
	AtMost  float64 `toml:"at_most"` // of the beginning's price
	Reached float64 `toml:"reached"` // as a target's
}

func (g growth) check() error {
	at := slices.IndexFunc(axes(false), func(a axis) bool { return a.name == g.Axis })
	if at < 0 {
		return fmt.Errorf("no axis is called %q", g.Axis)
	}
	a := axes(false)[at]
	for _, curve := range []string{g.Curve, g.Against} {
		if curve != "" && !slices.ContainsFunc(a.steps, func(st step) bool { return st.curve == curve }) {
			return fmt.Errorf("no curve of %q is called %q", g.Axis, curve)
		}
	}
	if g.Curve == "" || g.AtMost == 0 {
		return errors.New("it needs a curve and at_most")
	}
	return nil
}

// ends are the first and the last point of a curve; ok is false where there are not two.
func ends(some []spot, curve string) (first, last spot, ok bool) {
	for _, o := range some {
		switch {
		case o.Curve != curve:
		case first.Rounds == nil:
			first = o
		default:
			last, ok = o, true
		}
	}
	return first, last, ok
}

// grown is how many times as dear the end of a curve is as its beginning, round by round.
func grown(some []spot, curve string) (ratios []float64) {
	first, last, _ := ends(some, curve)
	price := perRequest()[0]
	low, high := first.values(price), last.values(price)
	for i := range min(len(low), len(high)) {
		ratios = append(ratios, high[i]/low[i])
	}
	return ratios
}

// compare compares the spots of its axis with a growth; there is no verdict where they were not measured.
func (g growth) compare(some []spot) (v verdict, ok bool) {
	values := grown(some, g.Curve)
	if g.Against != "" {
		peer := grown(some, g.Against)
		values = values[:min(len(values), len(peer))]
		for i := range values {
			values[i] /= peer[i]
		}
	}
	if len(values) == 0 {
		return v, false
	}
	return target{AtMost: g.AtMost, Against: g.Against, Reached: g.Reached}.verdict(values), true
}

// whole reports whether both ends of a curve were measured: what grew between others is no verdict on it.
func (a axis) whole(some []spot, curve string) bool {
	var at []float64
	for _, st := range a.steps {
		if st.curve == curve {
			at = append(at, st.at)
		}
	}
	first, last, ok := ends(some, curve)
	return ok && first.At == at[0] && last.At == at[len(at)-1]
}

// growthText says what grew by how much, and whether that is more than it should; lost = more than ever.
func growthText(out *strings.Builder, spots []spot, small bool, wanted []growth) (lost bool) {
	var grew, judged table
	grew.row("from one end to the other", "", "gates, µs a request", "grew by")
	judged.row("along", "", "wanted, of the first", "got", "")
	for _, a := range axes(small) {
		some := spotsOf(spots, a)
		if slices.Contains([]string{"connections", "rush", "skus", "routes", "keys"}, a.name) {
			a.grew(&grew, some)
		}
		for _, g := range wanted {
			if g.Axis != a.name || !a.whole(some, g.Curve) || g.Against != "" && !a.whole(some, g.Against) {
				continue
			}
			if v, ok := g.compare(some); ok {
				judged.row(a.title, g.Curve, v.wanted(), spread(v.values), v.end())
				lost = lost || v.lost
			}
		}
	}
	if len(grew.rows) > 1 {
		fmt.Fprintf(out, "## What grew\n\n%s\n", &grew)
	}
	if len(judged.rows) > 1 {
		fmt.Fprintf(out, "What [targets.toml](targets.toml) wants of it, round by round:\n\n%s\n", &judged)
	}
	return lost
}

// grew adds a line for each curve of the axis.
func (a axis) grew(t *table, some []spot) {
	var seen []string
	for _, o := range some {
		first, last, ok := ends(some, o.Curve)
		if !ok || slices.Contains(seen, o.Curve) {
			continue
		}
		seen = append(seen, o.Curve)
		price := perRequest()[0]
		low, high := middle(first.values(price)), middle(last.values(price))
		t.row(fmt.Sprintf("%s to %s %s", plain(first.At), plain(last.At), a.along), o.Curve, number(low)+" to "+number(high),
			fmt.Sprintf("%+.0f %%", 100*(high/low-1)))
	}
}
