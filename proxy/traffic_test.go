package proxy

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What is looked at once a second and the page of metrics are two ways to read the same counts.
func TestTrafficIsWhatTheMetricsSay(t *testing.T) {
	o := options(&seen{})
	o.Rates = []KeyedRate{keyed("a", "$remote_addr", 1), keyed("b", "$remote_addr", 1, "order", "rest")}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	dice := rand.New(rand.NewPCG(1, 2))
	for _, route := range []string{"zebra", "apple", "mango", "idle", "silent"} {
		for i := range p.counts.of(route) {
			c := &p.counts.of(route)[i]
			if route == "silent" { // closed without a word
				c.refused[DeniedIP].Add(1)
			}
			for range 200 {
				if route == "idle" || route == "silent" {
					break
				}
				c.code(dice.IntN(700))
				c.refused[1+dice.IntN(int(numReasons)-1)].Add(1)
				c.observed[1+dice.IntN(int(numReasons)-1)].Add(uint64(dice.IntN(3)))
			}
		}
	}
	for _, rate := range []string{"a", "b"} {
		for i := range p.counts.ofRate(rate) {
			p.counts.ofRate(rate)[i].refused.Add(uint64(dice.IntN(9)))
			p.counts.ofRate(rate)[i].observed.Add(uint64(dice.IntN(9)))
		}
	}
	want, got := map[string]float64{}, map[string]float64{}
	for series, n := range counted(t, p) {
		name, labels, _ := strings.Cut(series, " ")
		first, second, _ := strings.Cut(labels, " ")
		switch name {
		case "sluice_http_requests_total": // code, route
			want["requests"] += n
			want["requests of "+second] += n
		case "sluice_refused_requests_total": // reason, route
			want["refused by "+first] += n
			want["refused of "+second] += n
		case "sluice_observed_refusals_total":
			want["observed by "+first] += n
		case "sluice_rate_refused_requests_total":
			want["refused by rate "+first] += n
		case "sluice_rate_observed_refusals_total":
			want["observed by rate "+first] += n
		}
	}
	all := p.Traffic()
	got["requests"] = float64(all.Requests)
	for reason := range all.Refused {
		got["refused by "+Reason(reason).String()] = float64(all.Refused[reason])
		got["observed by "+Reason(reason).String()] = float64(all.Observed[reason])
	}
	for _, r := range all.Routes {
		got["requests of "+r.Route], got["refused of "+r.Route] = float64(r.Requests), float64(r.Refused)
	}
	for _, r := range all.Rates {
		got["refused by rate "+r.Rate], got["observed by rate "+r.Rate] = float64(r.Refused), float64(r.Observed)
	}
	zero := func(_ string, n float64) bool { return n == 0 }
	maps.DeleteFunc(got, zero)
	maps.DeleteFunc(want, zero)
	if !maps.Equal(got, want) || want["requests"] == 0 || want["refused by rate b"] == 0 {
		t.Errorf("traffic %v\nmetrics %v", got, want)
	}
	if !slices.IsSortedFunc(all.Routes, func(x, y RouteTraffic) int { return strings.Compare(x.Route, y.Route) }) {
		t.Errorf("routes by no name: %v", all.Routes)
	}
}

// A route that comes with a reload stands among the others, and one that has gone keeps its place.
func TestTrafficOfRoutesThatComeAndGo(t *testing.T) {
	c := newCounts(2)
	for _, name := range []string{"m", "z", "a", "m", "b"} {
		c.of(name)
	}
	if want := []string{"a", "b", "m", "z"}; !slices.Equal(c.names, want) {
		t.Errorf("%v, want %v", c.names, want)
	}
}

// However many routes there are, looking at them makes two things: the list of routes, and that of rates.
func TestTrafficOfManyRoutesAllocatesTwice(t *testing.T) {
	p, err := New(options(&seen{}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		p.counts.of(strings.Repeat("r", i+1))
	}
	if n := testing.AllocsPerRun(10, func() { _ = p.Traffic() }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

// What a second's look at a thousand idle routes costs.
func BenchmarkTraffic(b *testing.B) {
	p, err := New(options(&seen{}))
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		p.counts.of(strings.Repeat("r", i+1))
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = p.Traffic()
	}
}
