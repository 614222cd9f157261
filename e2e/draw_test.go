package e2e

import (
	"fmt"
	"strings"
)

// draw shows two films below each other as SVG: what was in flight, and what was answered.
func draw(fixed, adaptive []moment) string {
	var b strings.Builder
	fmt.Fprint(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 460" font-family="sans-serif" font-size="12">
<rect width="760" height="460" fill="#fff"/>
<text x="60" y="20"
 font-size="14">A shop of 20 workers whose latency triples for 10 s, under more shoppers than it can serve</text>
`)
	inside := func(m moment) float64 { return m.inside }
	served := func(m moment) float64 { return m.served * 10 }
	p := panel{&b, 40, 240, "in flight inside the shop"}
	p.frame(len(fixed), 50)
	p.line(fixed, inside, "#c0392b", "")
	p.line(adaptive, inside, "#1f618d", "")
	p.line(adaptive, func(moment) float64 { return workers }, "#555", "4 3")
	p = panel{&b, 250, 1200, "answers a second"}
	p.frame(len(fixed), 200)
	p.line(smooth(fixed), served, "#c0392b", "")
	p.line(smooth(adaptive), served, "#1f618d", "")
	p.line(adaptive, func(m moment) float64 { return m.capacity * 10 }, "#555", "4 3")
	fmt.Fprint(&b, `<text x="60" y="446" fill="#c0392b">max_in_flight = 200, fixed</text>
<text x="260" y="446" fill="#1f618d">the same, adaptive</text>
<text x="430" y="446" fill="#555">- - what its workers can do</text>
</svg>
`)
	return b.String()
}

// smooth averages over half a second.
func smooth(film []moment) (out []moment) {
	for i := range film {
		var m moment
		part := film[max(0, i-4) : i+1]
		for _, p := range part {
			m.served += p.served / float64(len(part))
		}
		out = append(out, m)
	}
	return out
}

// panel is one of the two diagrams, 160 high.
type panel struct {
	to    *strings.Builder
	top   int
	most  float64 // at the upper edge
	title string
}

const width, height, left = 680.0, 160.0, 60.0

func (p panel) y(v float64) float64 { return float64(p.top) + height*(1-min(v, p.most)/p.most) }

// frame draws the axes: a mark every 2 s, and every step upwards.
func (p panel) frame(moments, step int) {
	fmt.Fprintf(p.to, "<text x=\"%g\" y=\"%d\">%s</text>\n", left, p.top-5, p.title)
	for v := 0; float64(v) <= p.most; v += step {
		fmt.Fprintf(p.to, "<path d=\"M%g %.1fh%g\" stroke=\"#ddd\"/>"+
			"<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n",
			left, p.y(float64(v)), width, left-6, p.y(float64(v))+4, v)
	}
	for i := 0; i <= moments; i += 20 {
		x := left + width*float64(i)/float64(moments)
		fmt.Fprintf(p.to, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%d s</text>\n", x, float64(p.top)+height+14, i/10)
	}
}

func (p panel) line(film []moment, of func(moment) float64, colour, dashes string) {
	points := make([]string, len(film))
	for i, m := range film {
		points[i] = fmt.Sprintf("%.1f,%.1f", left+width*(float64(i)+0.5)/float64(len(film)), p.y(of(m)))
	}
	fmt.Fprintf(p.to, "<polyline fill=\"none\" stroke=%q stroke-width=\"1.5\" stroke-dasharray=%q points=%q/>\n", colour,
		dashes, strings.Join(points, " "))
}
