package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What a run says: a table and a plot for each axis, and what grew by how much.

// shown is one number of a point, as tables and plots have it.
type shown struct {
	name, unit string
	of         func(cost) float64
}

// perRequest are the numbers of a request; of an order where all that is forwarded is orders.
func perRequest() []shown {
	per := func(v func(cost) float64) func(cost) float64 {
		return func(c cost) float64 { return v(c) / max(c.Requests, 1) }
	}
	return []shown{
		{"gates", "µs a request", per(func(c cost) float64 { return c.Gates })},
		{"Redis", "µs a request", per(func(c cost) float64 { return c.Redis })},
		{"Redis calls", "a request", per(func(c cost) float64 { return c.Calls })},
	}
}

// perSecond are those of an idle fleet; inAll those of a whole sale.
func perSecond() []shown {
	per := func(v func(cost) float64) func(cost) float64 { return func(c cost) float64 { return v(c) / c.Seconds } }
	return []shown{
		{"gates", "µs a second", per(func(c cost) float64 { return c.Gates })},
		{"Redis", "µs a second", per(func(c cost) float64 { return c.Redis })},
		{"Redis calls", "a second", per(func(c cost) float64 { return c.Calls })},
	}
}

func inAll() []shown {
	return []shown{
		{"gates", "ms in all", func(c cost) float64 { return c.Gates / 1e3 }},
		{"Redis", "ms in all", func(c cost) float64 { return c.Redis / 1e3 }},
		{"Redis calls", "in all", func(c cost) float64 { return c.Calls }},
	}
}

// columns are the numbers that say most of an axis; its plot shows the one at plotted.
func (a axis) columns() (all []shown, plotted int) {
	switch a.name {
	case "idle":
		return perSecond(), 2
	case "sale":
		return inAll(), 2
	}
	return perRequest(), 0
}

func (o spot) values(s shown) (all []float64) {
	for _, c := range o.Rounds {
		all = append(all, s.of(c))
	}
	return all
}

// spotsOf are the spots of an axis, curve by curve and from left to right.
func spotsOf(spots []spot, a axis) (some []spot) {
	for _, st := range a.steps {
		for _, o := range spots {
			if o.Axis == a.name && o.Curve == st.curve && o.At == st.at && o.Load == st.load {
				some = append(some, o)
			}
		}
	}
	return some
}

func (s *scale) report(spots []spot) error {
	spots = levelled(spots)
	wanted, err := readTargets(s.targets)
	if err != nil {
		return err
	}
	text, lost := s.text(spots, wanted.Growth)
	fmt.Print(text)
	if lost {
		err = errMissed
	}
	if s.out == "" {
		return err
	}
	for _, a := range axes(s.small) {
		if picture := a.picture(spotsOf(spots, a)); picture != nil {
			if err := os.WriteFile(filepath.Join(s.out, "scale-"+a.name+".svg"), picture, 0o644); err != nil {
				return err
			}
		}
	}
	return errors.Join(os.WriteFile(filepath.Join(s.out, "SCALE.md"), []byte(text), 0o644), err)
}

// text is the report, and whether it is a bad one.
func (s *scale) text(spots []spot, wanted []growth) (text string, lost bool) {
	var out strings.Builder
	fmt.Fprintf(&out, "# How cost grows, measured\n\n`make bench-scale` writes this page and the plots; "+
		"[docs/scale.md](../docs/scale.md) says what follows from it. "+
		"Processor time is that of all\nprocesses of the gates, or of Redis, as it would have been at the median speed of "+
		"the machine ([reference_load.go](yardstick.go)); "+
		"numbers are medians\nof the rounds ± half of what their middle half spans.\n\n`%s`\n\n%s\n",
		s.command, ground())
	for _, a := range axes(s.small) {
		some := spotsOf(spots, a)
		if len(some) == 0 {
			continue
		}
		fmt.Fprintf(&out, "## %s\n\n", strings.ToUpper(a.title[:1])+a.title[1:])
		if a.picture(some) != nil {
			fmt.Fprintf(&out, "![%s](scale-%s.svg)\n\n", a.title, a.name)
		}
		t := a.table(some)
		fmt.Fprintf(&out, "%s\n", &t)
	}
	lost = growthText(&out, spots, s.small, wanted)
	return out.String(), lost
}

// table has a line a point; growth is to the first point of the curve.
func (a axis) table(some []spot) (t table) {
	columns, plotted := a.columns()
	head := []string{"", a.along}
	for _, c := range columns {
		head = append(head, c.name+", "+c.unit)
	}
	t.row(append(head, "of the first", "rounds")...)
	first := 0.0
	for i, o := range some {
		row := []string{o.Curve, plain(o.At)}
		for _, c := range columns {
			row = append(row, spread(o.values(c)))
		}
		value := middle(o.values(columns[plotted]))
		if i == 0 || some[i-1].Curve != o.Curve {
			first = value
		}
		t.row(append(row, fmt.Sprintf("%.2f", value/first), fmt.Sprint(len(o.Rounds)))...)
	}
	return t
}

// picture is the plot of an axis; nil where there is nothing to plot.
func (a axis) picture(some []spot) []byte {
	columns, plotted := a.columns()
	var curves []drawn
	for _, o := range some {
		values := o.values(columns[plotted])
		m := mark{o.At, quantile(values, 0.25), middle(values), quantile(values, 0.75)}
		if n := len(curves); n == 0 || curves[n-1].name != o.Curve {
			curves = append(curves, drawn{name: o.Curve})
		}
		last := &curves[len(curves)-1]
		last.points = append(last.points, m)
	}
	return draw(columns[plotted].name+", "+a.title, a.along, columns[plotted].unit, curves)
}
