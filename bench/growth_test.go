package main

import (
	"strings"
	"testing"
)

// spotted is a point of the usual load, with what a request cost in each round.
func spotted(axis, curve string, at float64, micros ...float64) spot {
	o := spot{Axis: axis, Curve: curve, At: at}
	for _, v := range micros {
		o.Rounds = append(o.Rounds, cost{Requests: 1, Gates: v})
	}
	return o
}

func TestGrowth_IsJudgedRoundByRound(t *testing.T) {
	some := []spot{
		spotted("connections", "Sluice, limited", 64, 10, 100, 10), // the machine was slow in the second round
		spotted("connections", "Sluice, limited", 1000, 1, 1, 1),
		spotted("connections", "Sluice, limited", 10_000, 15, 150, 15),
		spotted("connections", "nginx, limited", 64, 10, 10, 10),
		spotted("connections", "nginx, limited", 10_000, 20, 20, 20),
		spotted("connections", "bare fasthttp", 64, 10),
	}
	limited := growth{Axis: "connections", Curve: "Sluice, limited", AtMost: 1.15}
	within, worse, beside, alone, absent := limited, limited, limited, limited, limited
	within.Reached, worse.Reached = 1.5, 1.4
	beside.Against, beside.AtMost = "nginx, limited", 1.0
	alone.Curve, absent.Curve = "bare fasthttp", "Sluice, forwarded"
	for _, c := range []struct {
		growth
		judged, missed, lost bool
		got                  float64
	}{
		{limited, true, true, true, 1.5},
		{within, true, true, false, 1.5},
		{worse, true, true, true, 1.5},
		{beside, true, false, false, 0.75},
		{alone, false, false, false, 0},
		{absent, false, false, false, 0},
	} {
		v, ok := c.compare(some)
		if ok != c.judged || v.got != c.got || v.missed != c.missed || v.lost != c.lost {
			t.Errorf("%+v: judged %v, got %g, missed %v, lost %v", c.growth, ok, v.got, v.missed, v.lost)
		}
	}
}

func TestGrowth_IsTold(t *testing.T) {
	var spots []spot
	for _, st := range axes(false)[0].steps {
		o := spotted("connections", st.curve, st.at, st.at)
		o.Load = st.load
		spots = append(spots, o)
	}
	var out strings.Builder
	lost := growthText(&out, spots, false, []growth{{Axis: "connections", Curve: "Sluice, limited", AtMost: 1.15}})
	for _, want := range []string{"nginx, sold out           | 64.0 to 10000       | +15525 %", "**missed**"} {
		if !lost || !strings.Contains(out.String(), want) {
			t.Errorf("lost %v; no %q in\n%s", lost, want, out.String())
		}
	}
}

func TestGrowth_HalfACurveIsNotJudged(t *testing.T) {
	var spots []spot
	for _, st := range axes(false)[0].steps {
		o := spotted("connections", st.curve, st.at, 10)
		o.Load = st.load
		if st.at < 10_000 || st.curve != "Sluice, limited" {
			spots = append(spots, o)
		}
	}
	wanted := []growth{
		{Axis: "connections", Curve: "Sluice, limited", AtMost: 1.15},
		{Axis: "connections", Curve: "Sluice, sold out", Against: "Sluice, limited", AtMost: 1.15},
	}
	var out strings.Builder
	if growthText(&out, spots, false, wanted); strings.Contains(out.String(), "reached") {
		t.Error(out.String())
	}
}
