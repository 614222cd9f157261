package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// The plot's measures, in pixels.
const (
	plotWidth  = 760
	plotLeft   = 210 // where bars begin
	plotBar    = 14
	plotGap    = 14 // between scenarios
	plotTop    = 44
	plotMost   = 3.0 // ratios beyond are cut off; their number stands beside them
	plotLength = plotWidth - plotLeft - 60
)

// plot draws the processor time of a request in each scenario and gate, as a ratio to the best rival's: 1 is as good,
// shorter is better.
func plot(r results, connections int) []byte {
	var bars strings.Builder
	y := plotTop
	for _, s := range scenarios() {
		drawn := false
		for _, k := range gateKinds() {
			c := cell{s.name, k.name, connections}
			ratio := middle(r.toBest(c, gateCPU))
			if math.IsNaN(ratio) {
				continue
			}
			drawBar(&bars, y, s.name+" · "+k.title, ratio, colour(k.name))
			y, drawn = y+plotBar+3, true
		}
		if drawn {
			y += plotGap
		}
	}
	one := plotLeft + plotLength/plotMost
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"
 font-family="sans-serif" font-size="11">
<rect width="100%%" height="100%%" fill="white"/>
<text x="10" y="20" font-size="13">CPU a request at %d connections, of the best peer's (shorter is better)</text>
<line x1="%.0f" y1="30" x2="%.0f" y2="%d" stroke="#888" stroke-dasharray="4 3"/>
<text x="%.0f" y="38" fill="#666">1.0</text>
%s</svg>
`, plotWidth, y, connections, one, one, y-plotGap, one+4, bars.String())
}

func drawBar(out *strings.Builder, y int, label string, ratio float64, fill string) {
	length := math.Min(ratio, plotMost) / plotMost * plotLength
	fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", plotLeft-6, y+11, html.EscapeString(label))
	fmt.Fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", plotLeft, y, length, plotBar,
		fill)
	fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%d\">%.2f</text>\n", plotLeft+length+4, y+11, ratio)
}

// colour is Sluice's, the rivals', or that of what is only a bound.
func colour(gate string) string {
	switch gate {
	case "sluice":
		return "#1f77b4"
	case "bare", "naive":
		return "#dddddd"
	}
	return "#999999"
}

// A plot of curves: what grows along the bottom in a logarithmic scale, µs upwards from zero.
const (
	curveWidth  = 760
	curveHeight = 340
	curveLeft   = 56
	curveRight  = 230 // room for the names
	curveTop    = 40
	curveFoot   = 44
)

// hues tell curves apart; Sluice's own come first.
func hues() []string {
	return []string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"}
}

// drawn is a curve as it is drawn.
type drawn struct {
	name   string
	points []mark
}

// mark is a median with the middle half of its rounds.
type mark struct{ at, low, value, high float64 }

// draw plots curves.
func draw(title, along, unit string, curves []drawn) []byte {
	var all []mark
	for _, c := range curves {
		all = append(all, c.points...)
	}
	if len(all) == 0 {
		return nil
	}
	most := 0.0
	first, last := all[0].at, all[0].at
	for _, m := range all {
		most, first, last = max(most, m.high), min(first, m.at), max(last, m.at)
	}
	most = max(most*1.1, 1e-9)
	x := func(at float64) float64 {
		if last <= first {
			return curveLeft
		}
		return curveLeft + math.Log(at/first)/math.Log(last/first)*(curveWidth-curveLeft-curveRight)
	}
	y := func(v float64) float64 { return curveHeight - curveFoot - v/most*(curveHeight-curveFoot-curveTop) }
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"
 font-family="sans-serif" font-size="11">
<rect width="100%%" height="100%%" fill="white"/>
<text x="10" y="20" font-size="13">%s</text>
`, curveWidth, curveHeight, html.EscapeString(title))
	for i := range 5 {
		v := most / 1.1 * float64(i) / 4
		fmt.Fprintf(&out, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", curveLeft, y(v),
			curveWidth-curveRight, y(v))
		fmt.Fprintf(&out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", curveLeft-6, y(v)+4, number(v))
	}
	fmt.Fprintf(&out, "<text x=\"%d\" y=\"%d\">%s</text>\n", 10, curveTop-6, html.EscapeString(unit))
	for _, at := range ticks(all) {
		fmt.Fprintf(&out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x(at), curveHeight-curveFoot+16,
			plain(at))
	}
	fmt.Fprintf(&out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", (curveLeft+curveWidth-curveRight)/2,
		curveHeight-10, html.EscapeString(along))
	for i, c := range curves {
		drawCurve(&out, c, hues()[i%len(hues())], curveTop+16*i, x, y)
	}
	return []byte(out.String() + "</svg>\n")
}

func drawCurve(out *strings.Builder, c drawn, hue string, at int, x, y func(float64) float64) {
	var path []string
	for _, m := range c.points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x(m.at), y(m.value)))
		fmt.Fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"3\" "+
			"opacity=\"0.35\"/>\n", x(m.at), y(m.low), x(m.at), y(m.high), hue)
		fmt.Fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x(m.at), y(m.value), hue)
	}
	fmt.Fprintf(out, "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\"/>\n", strings.Join(path, " "), hue)
	fmt.Fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"10\" fill=\"%s\"/>\n", curveWidth-curveRight+20, at,
		hue)
	fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", curveWidth-curveRight+36, at+9, html.EscapeString(c.name))
}

// ticks are the places along the bottom.
func ticks(all []mark) (places []float64) {
	for _, m := range all {
		if !slices.Contains(places, m.at) {
			places = append(places, m.at)
		}
	}
	slices.Sort(places)
	return places
}

// plain writes a whole number with its thousands apart.
func plain(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
