package admin

import (
	"cmp"
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// reading is what the gate has counted and what its metrics say at one instant: counts since the start, and how things
// stand.
type reading struct {
	requests                   int64
	rejected, observed         map[string]int64 // by reason
	causes                     map[string]int64 // by label
	routes                     []metrics.RouteTraffic
	rateRejected, rateObserved map[string]int64 // by keyed rate

	series map[string]map[string]int64 // by name without sluice_, and by labels with blanks between
	times  map[string]histograms       // likewise
	stock  map[string]*StockSecond
}

// read takes in all traffic and all metrics.
func read(traffic metrics.Traffic, families []*dto.MetricFamily) *reading {
	r := &reading{
		requests: traffic.Requests, routes: traffic.Routes, rejected: byName[reject.Reason](traffic.Rejected[:]),
		observed: byName[reject.Reason](traffic.Observed[:]), causes: byName[reject.Cause](traffic.Causes[:]),
		rateRejected: map[string]int64{}, rateObserved: map[string]int64{},
		series: map[string]map[string]int64{}, times: map[string]histograms{}, stock: map[string]*StockSecond{},
	}
	for _, rate := range traffic.Rates {
		r.rateRejected[rate.Rate], r.rateObserved[rate.Rate] = rate.Rejected, rate.Observed
	}
	for _, f := range families {
		if name, ok := strings.CutPrefix(f.GetName(), "sluice_"); ok {
			r.addFamily(name, f.GetMetric())
		}
	}
	total, held := r.series["stock_total"], r.series["stock_held"]
	sold, free := r.series["stock_sold"], r.series["stock_free"]
	for _, all := range []map[string]int64{total, held, sold, free} {
		for sku := range all {
			r.stock[sku] = &StockSecond{SKU: sku, Total: total[sku], Held: held[sku], Sold: sold[sku], Free: free[sku]}
		}
	}
	return r
}

// addFamily adds the series of one metric.
func (r *reading) addFamily(name string, all []*dto.Metric) {
	r.series[name], r.times[name] = map[string]int64{}, histograms{}
	for _, m := range all {
		var labels []string // in the order of their names
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetValue())
		}
		if of := strings.Join(labels, " "); m.GetHistogram() != nil {
			r.times[name][of] = m.GetHistogram()
		} else {
			r.series[name][of] = valueOf(m)
		}
	}
}

// total is the sum of all series of a metric.
func (r *reading) total(name string) int64 { return sum(r.series[name]) }

// upstream are the requests that the shop answered or failed to, and the faults among all that were meant for it, by
// code and target.
func (r *reading) upstream() (sent, failed map[string]int64) {
	sent, failed = map[string]int64{}, map[string]int64{}
	for of, n := range r.series["upstream_requests_total"] {
		code, _, _ := strings.Cut(of, " ")
		if code != "not_sent" { // the shop did not see it
			sent[of] = n
		}
		if len(code) != 3 || code[0] == '5' {
			failed[of] = n
		}
	}
	return sent, failed
}

// byName are the counts that are not 0, by the names of reasons or causes.
func byName[T interface {
	reject.Reason | reject.Cause
	String() string
}](counts []int64) map[string]int64 {
	by := map[string]int64{}
	for i, n := range counts {
		if n > 0 {
			by[T(i).String()] = n
		}
	}
	return by
}

// route is what was counted of a route; zero when nothing was.
func (r *reading) route(name string) metrics.RouteTraffic {
	i, found := slices.BinarySearchFunc(r.routes, name,
		func(t metrics.RouteTraffic, name string) int { return cmp.Compare(t.Route, name) })
	if !found {
		return metrics.RouteTraffic{}
	}
	return r.routes[i]
}

// valueOf is the value of a counter or a gauge, which count whole things here.
func valueOf(m *dto.Metric) int64 {
	v := m.GetCounter().GetValue() + m.GetGauge().GetValue() // one of them is there
	if math.IsNaN(v) || math.Abs(v) > 1<<62 {
		return 0
	}
	return int64(v)
}

// histograms are those of one metric, by their labels.
type histograms map[string]*dto.Histogram

// since is what was added to all of them together.
func (h histograms) since(before histograms) (d distribution) {
	for name, now := range h {
		old := before[name].GetBucket()
		for i, b := range now.GetBucket() {
			n := b.GetCumulativeCount()
			if i < len(old) && old[i].GetCumulativeCount() <= n {
				n -= old[i].GetCumulativeCount()
			}
			d.add(b.GetUpperBound(), n)
		}
		all := now.GetSampleCount()
		if was := before[name].GetSampleCount(); was <= all {
			all -= was
		}
		d.count += all
	}
	return d
}

// distribution is a histogram's cumulative buckets, by their upper bounds in seconds.
type distribution struct {
	bounds []float64
	counts []uint64
	count  uint64 // with those above the last bound
}

func (d *distribution) add(bound float64, n uint64) {
	i, found := slices.BinarySearch(d.bounds, bound)
	if !found {
		d.bounds, d.counts = slices.Insert(d.bounds, i, bound), slices.Insert(d.counts, i, 0)
	}
	d.counts[i] += n
}

// quantile estimates, in milliseconds, what a part of all does not exceed: linearly within a bucket, and at most the
// last bound. 0 = there is nothing.
func (d *distribution) quantile(q float64) float64 {
	rank, below, lower := q*float64(d.count), 0.0, 0.0
	if d.count == 0 || len(d.bounds) == 0 {
		return 0
	}
	for i, upper := range d.bounds {
		n := float64(d.counts[i])
		if n >= rank && n > below {
			return math.Round((lower+(upper-lower)*(rank-below)/(n-below))*1e6) / 1e3
		}
		below, lower = n, upper
	}
	return math.Round(d.bounds[len(d.bounds)-1]*1e6) / 1e3
}
