package main

import (
	"fmt"
	"html"
	"math"
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

// plot draws the processor time of a request in each scenario and gate, as a ratio to the best rival's: 1 is as good, shorter is better.
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
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">
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
	fmt.Fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", plotLeft, y, length, plotBar, fill)
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
