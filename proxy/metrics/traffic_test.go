package metrics

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sluice/internal/testkit"
	"sluice/proxy/reject"
)

// The dashboard and Prometheus are two readers of the same counts.
func TestTraffic_EqualsTheMetrics(t *testing.T) {
	c := countAtRandom()
	got := map[string]float64{}
	all := c.Traffic()
	got["requests"] = float64(all.Requests)
	for reason := range all.Rejected {
		got["rejected by "+reject.Reason(reason).String()] = float64(all.Rejected[reason])
		got["observed by "+reject.Reason(reason).String()] = float64(all.Observed[reason])
	}
	for _, r := range all.Routes {
		got["requests of "+r.Route], got["rejected of "+r.Route] = float64(r.Requests), float64(r.Rejected)
	}
	for _, r := range all.Rates {
		got["rejected by rate "+r.Rate] = float64(r.Rejected)
		got["observed by rate "+r.Rate] = float64(r.Observed)
	}
	want := sumMetrics(testkit.Series(t, c))
	zero := func(_ string, n float64) bool { return n == 0 }
	maps.DeleteFunc(got, zero)
	maps.DeleteFunc(want, zero)
	if !maps.Equal(got, want) || want["requests"] == 0 || want["rejected by rate b"] == 0 {
		t.Errorf("traffic %v\nmetrics %v", got, want)
	}
}

func countAtRandom() *Counters {
	c := NewCounters(3)
	random := rand.New(rand.NewPCG(1, 2))
	reason := func() reject.Reason { return reject.Reason(1 + random.IntN(int(reject.NumReasons)-1)) }
	for range 3 {
		s := c.Shard()
		c.Route("idle")
		c.Route("silent").At(s).Rejected(reject.DeniedIP) // closed without a response
		for _, name := range []string{"zebra", "apple", "mango"} {
			r := c.Route(name).At(s)
			for range 200 {
				r.Status(random.IntN(700))
				r.Rejected(reason())
				r.Observed(reason())
			}
		}
		for _, name := range []string{"a", "b"} {
			for range 1 + random.IntN(9) {
				c.Rate(name).At(s).Rejected()
				c.Rate(name).At(s).Observed()
			}
		}
	}
	return c
}

// sumMetrics adds up the series of gather as Traffic does.
func sumMetrics(series map[string]float64) map[string]float64 {
	sums := map[string]float64{}
	for name, n := range series {
		name, labels, _ := strings.Cut(name, " ")
		first, route, _ := strings.Cut(labels, " ")
		switch name {
		case "sluice_http_requests_total": // code, route
			sums["requests"] += n
			sums["requests of "+route] += n
		case "sluice_rejected_requests_total": // reason, route
			sums["rejected by "+first] += n
			sums["rejected of "+route] += n
		case "sluice_observed_rejections_total":
			sums["observed by "+first] += n
		case "sluice_rate_rejected_requests_total":
			sums["rejected by rate "+first] += n
		case "sluice_rate_observed_rejections_total":
			sums["observed by rate "+first] += n
		}
	}
	return sums
}

func TestTraffic_RoutesAreSortedAcrossReloads(t *testing.T) {
	c := NewCounters(2)
	for _, name := range []string{"m", "z", "a", "m", "b"} {
		c.Route(name)
	}
	var names []string
	for _, r := range c.Traffic().Routes {
		names = append(names, r.Route)
	}
	if want := []string{"a", "b", "m", "z"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// countersOf returns counters of so many routes.
func countersOf(routes int) *Counters {
	c := NewCounters(4)
	for i := range routes {
		c.Route(strings.Repeat("r", i+1))
	}
	return c
}

// The two allocations are the lists of routes and of rates.
func TestTraffic_AllocatesTwiceForAnyNumberOfRoutes(t *testing.T) {
	c := countersOf(100)
	if n := testing.AllocsPerRun(10, func() { _ = c.Traffic() }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTraffic(b *testing.B) {
	c := countersOf(1000)
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Traffic()
	}
}
