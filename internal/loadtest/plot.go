package loadtest

import (
	"fmt"
	"strings"
	"time"
)

// The plot's measures, in pixels.
const (
	plotWidth  = 800
	plotHeight = 420
	plotLeft   = 70
	plotRight  = 70
	plotTop    = 56
	plotBottom = 40
)

// Plot draws what came in a second, what of it was rejected, what the shop was asked for, and the units sold, as SVG.
func (r *Result) Plot() []byte {
	inner, height := float64(plotWidth-plotLeft-plotRight), float64(plotHeight-plotTop-plotBottom)
	scale := float64(time.Second) / float64(r.seriesEvy)
	most := int64(1)
	for _, s := range r.series[:3] {
		for _, n := range s {
			most = max(most, n)
		}
	}
	draw := func(s []int64, top float64) string {
		var b strings.Builder
		for i, n := range s {
			x := plotLeft + inner*(float64(i)+0.5)/float64(len(s))
			y := float64(plotTop) + height*(1-float64(n)/top)
			fmt.Fprintf(&b, "%.1f,%.1f ", x, y)
		}
		return b.String()
	}
	sold := make([]int64, len(r.series[3]))
	sum := int64(0)
	for i, n := range r.series[3] {
		sum += n
		sold[i] = sum
	}
	var b strings.Builder
	end := fmt.Sprintf("%d units sold", r.Shop.Orders)
	if r.SoldOut {
		end = fmt.Sprintf("sold out after %.2f s", r.LastUnit)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"
 font-family="sans-serif" font-size="11">
<rect width="100%%" height="100%%" fill="white"/>
<text x="10" y="20" font-size="14">%d buyers, %d units, %s: %s</text>
`, plotWidth, plotHeight, r.Buyers, r.Units, r.Shape, end)
	for i := range 5 {
		y := float64(plotTop) + height*float64(i)/4
		part := 1 - float64(i)/4
		fmt.Fprintf(&b, `<line x1="%d" y1="%.0f" x2="%.0f" y2="%.0f" stroke="#ddd"/><text x="%d" y="%.0f" `+
			`text-anchor="end">%.0f/s</text><text x="%.0f" y="%.0f" fill="#2ca02c">%.0f</text>`+"\n",
			plotLeft, y, plotLeft+inner, y, plotLeft-5, y+4, part*float64(most)*scale, plotLeft+inner+5, y+4,
			part*float64(r.Units))
	}
	for i := range 6 {
		x := plotLeft + inner*float64(i)/5
		fmt.Fprintf(&b, `<text x="%.0f" y="%d" text-anchor="middle">%.1f s</text>`+"\n", x, plotHeight-18,
			r.Took*float64(i)/5)
	}
	for i, one := range []struct{ name, colour string }{{"requests", "#888888"}, {"rejected by the gateway", "#d62728"},
		{"asked of the shop", "#1f77b4"}, {"units sold (right)", "#2ca02c"}} {
		points, top := r.series[i], float64(most)
		if i == 3 {
			points, top = sold, float64(max(1, r.Units, sum))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/><text x="%d" y="40" `+
			`fill="%s">%s</text>`+"\n", one.colour, draw(points, top), plotLeft+i*160, one.colour, one.name)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}
