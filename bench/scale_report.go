package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What a run says: a table and a plot an axis, what grew by how much, and the model with what it says of the mixtures.

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

// perSecond are those of a fleet that nobody asks; inAll those of a whole sale.
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

// of are the spots of an axis, curve by curve and from left to right.
func of(spots []spot, a axis) (some []spot) {
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
		if picture := a.picture(of(spots, a)); picture != nil {
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
	fmt.Fprintf(&out, "# How cost grows, measured\n\n`make bench-scale` writes this page and the plots; [docs/scale.md](../docs/scale.md) says what follows from it. "+
		"Processor time is that of all\nprocesses of the gates, or of Redis, as it would have been at the median speed of the machine ([yardstick.go](yardstick.go)); "+
		"numbers are medians\nof the rounds ± half of what their middle half spans.\n\n`%s`\n\n%s\n",
		s.command, ground())
	for _, a := range axes(s.small) {
		some := of(spots, a)
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
	modelText(&out, spots, s.small)
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
	if a.name == "held-out" {
		return nil
	}
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

// learnt are the points of Sluice that a model may know: all that last for a time, but for the mixtures.
func learnt(spots []spot, small bool) (some []spot) {
	for _, a := range axes(small) {
		for _, o := range of(spots, a) {
			if o.Load.Gate == "sluice" && !slices.Contains([]string{"held-out", "rush", "sale"}, a.name) && o.Load.CheckPart == 0 {
				some = append(some, o)
			}
		}
	}
	return some
}

// given is what the median round of a spot asks of a law.
func (o spot) given(by batching) given {
	var n, seconds []float64
	for _, c := range o.Rounds {
		n, seconds = append(n, c.Requests), append(seconds, c.Seconds)
	}
	return given{load: o.Load, requests: middle(n), seconds: middle(seconds), batching: by}
}

// value is a law's number at its level, for as many requests and seconds as given says.
func (o spot) value(l *law, g given) float64 {
	var all []float64
	for _, c := range o.Rounds {
		if c.Requests > 0 {
			all = append(all, l.measured(c)/c.Requests*g.requests)
		} else {
			all = append(all, l.measured(c)/c.Seconds*g.seconds)
		}
	}
	return quantile(all, l.level)
}

// batched fits how orders share their calls: first how many do, where there is nothing but orders, and then for how long
// they are under way among others.
func batched(some []spot) batching {
	calls := callLaw()
	var under, per []float64
	for _, o := range some {
		g := o.given(batching{longer: 1})
		if n := o.value(&calls, g) - g.aside(); o.Load.OrderPart == 100 && n > 0 {
			under, per = append(under, g.ordersUnderWay()), append(per, g.orders()/n)
		}
	}
	best := batching{slope{0.25, 0.5}, 2}
	if len(under) > 1 {
		best.perBatch = straight(under, per)
	}
	least := math.Inf(1)
	for tenth := 5; tenth <= 80; tenth++ {
		try, off, mixed := batching{best.perBatch, float64(tenth) / 10}, 0.0, 0
		for _, o := range some {
			g := o.given(try)
			if n := o.value(&calls, g) - g.aside(); o.Axis == "mixed" && n > 0 {
				off, mixed = off+math.Abs(math.Log(g.batches()/n)), mixed+1
			}
		}
		if mixed > 0 && off < least {
			best.longer, least = try.longer, off
		}
	}
	return best
}

// modelText fits the laws and holds them against the mixtures.
func modelText(out *strings.Builder, spots []spot, small bool) {
	some := learnt(spots, small)
	if len(some) < 12 {
		return
	}
	by := batched(some)
	fmt.Fprintf(out, "## The model\n\nProcessor time is the first quartile of the rounds here, of points and mixtures: what disturbs a measurement mostly adds to it.\n\nOrders in a call: %s + %s · orders of one SKU and instance that are under way, at most %d; an order is under way %s times as long as a refusal.\n\n",
		number(by.perBatch.start), number(by.perBatch.rise), mostInBatch, number(by.longer))
	var held table
	held.row("load", "number", "predicted, a request", "measured", "error")
	for _, l := range []law{gateLaw(), redisLaw(), callLaw()} {
		var points []observed
		for _, o := range some {
			g := o.given(by)
			if v := o.value(&l, g); v > 0 {
				points = append(points, observed{g, v})
			}
		}
		l.fit(points)
		var prices table
		prices.row(l.name, "of", "µs", "within it: "+within(&l, points))
		for k, t := range l.terms {
			prices.row(t.name, t.what, number(l.price[k]), "")
		}
		fmt.Fprintf(out, "`%s`\n\n%s\n", l.formula(), &prices)
		for _, a := range axes(small) {
			if a.name != "held-out" && a.name != "sale" {
				continue
			}
			for _, o := range of(spots, a) {
				g := o.given(by)
				want, got := l.predict(g)/g.requests, o.value(&l, g)/g.requests
				name := o.Curve
				if a.name == "sale" {
					name += ", " + plain(o.At) + " requests"
				}
				held.row(name, l.name, number(want), number(got), fmt.Sprintf("%+.0f %%", 100*(want/got-1)))
			}
		}
	}
	if len(held.rows) > 1 {
		fmt.Fprintf(out, "### Mixtures and sales that it has not seen\n\n%s\n", &held)
	}
}

// within says how far a law is off the points that it was made of.
func within(l *law, points []observed) string {
	var off []float64
	for _, p := range points {
		off = append(off, math.Abs(l.predict(p.given)/p.value-1))
	}
	return fmt.Sprintf("%.0f %% half of the points, %.0f %% nine of ten", 100*middle(off), 100*quantile(off, 0.9))
}
