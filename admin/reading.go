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
	requests                     int64
	rejected, observed           map[string]int64 // by reason
	routes                       []metrics.RouteTraffic
	rateRejected, rateObserved   map[string]int64 // by keyed rate
	rejectedConns, observedConns map[string]int64 // by reason
	sent, failed                 map[string]int64 // by target and code
	calls, errors                map[string]int64 // of Redis
	windows, saturated           map[string]int64
	shop, redis                  histograms
	stock                        map[string]*StockSecond
	notCounted, hot              map[string]int64 // by SKU: units left, and recent requests

	connections, inFlight, limit, queue, up, targets, unknown int64
	hasRedis, redisUp                                         bool
}

// read takes in all traffic, and of metrics what it knows.
func read(traffic metrics.Traffic, families []*dto.MetricFamily) *reading {
	r := &reading{
		requests: traffic.Requests, routes: traffic.Routes, rejected: byReason(traffic.Rejected[:]),
		observed:     byReason(traffic.Observed[:]),
		rateRejected: map[string]int64{}, rateObserved: map[string]int64{}, rejectedConns: map[string]int64{},
		observedConns: map[string]int64{},
		sent:          map[string]int64{}, failed: map[string]int64{}, calls: map[string]int64{}, errors: map[string]int64{},
		windows: map[string]int64{}, saturated: map[string]int64{}, shop: histograms{}, redis: histograms{},
		stock: map[string]*StockSecond{}, notCounted: map[string]int64{}, hot: map[string]int64{},
	}
	for _, rate := range traffic.Rates {
		r.rateRejected[rate.Rate], r.rateObserved[rate.Rate] = rate.Rejected, rate.Observed
	}
	for _, f := range families {
		name, ok := strings.CutPrefix(f.GetName(), "sluice_")
		for _, m := range f.GetMetric() {
			if ok {
				r.addSeries(name, m)
			}
		}
	}
	return r
}

// byReason are the counts that are not 0, by the names of reasons.
func byReason(counts []int64) map[string]int64 {
	by := map[string]int64{}
	for reason, n := range counts {
		if n > 0 {
			by[reject.Reason(reason).String()] = n
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

// addSeries adds one series.
func (r *reading) addSeries(name string, m *dto.Metric) {
	n, first := valueOf(m), label(m, 0) // labels are in the order of their names
	switch name {
	case "rejected_connections_total":
		r.rejectedConns[first] = n
	case "observed_connection_rejections_total":
		r.observedConns[first] = n
	case "connections":
		r.connections = n
	case "windows_total":
		r.windows[first] = n
	case "windows_saturated_total":
		r.saturated[first] = n
	default:
		r.addUpstreamSeries(name, m, n)
	}
}

func (r *reading) addUpstreamSeries(name string, m *dto.Metric, n int64) {
	first, second := label(m, 0), label(m, 1)
	switch name {
	case "upstream_requests_total": // code, target
		if first == "not_sent" { // the shop did not see it: an error, and no request of the shop
			r.failed[first+" "+second] = n
			return
		}
		r.sent[first+" "+second] = n
		if len(first) != 3 || first[0] == '5' {
			r.failed[first+" "+second] = n
		}
	case "upstream_request_duration_seconds":
		r.shop[first] = m.GetHistogram()
	case "upstream_in_flight":
		r.inFlight += n
	case "upstream_in_flight_limit":
		r.limit = n
	case "queue_length":
		r.queue = n
	case "upstream_up":
		r.targets++
		r.up += n
	default:
		r.addStockSeries(name, m, n)
	}
}

func (r *reading) addStockSeries(name string, m *dto.Metric, n int64) {
	first, second := label(m, 0), label(m, 1)
	switch name {
	case "redis_command_duration_seconds":
		r.redis[first] = m.GetHistogram()
	case "redis_calls_total":
		r.calls[first] = n
		r.hasRedis = true
	case "redis_errors_total":
		r.errors[first+" "+second] = n
	case "redis_up":
		r.hasRedis, r.redisUp = true, n == 1
	case "reservations_unknown":
		r.unknown += n
	case "stock_total":
		r.stockOf(first).Total = n
	case "stock_held":
		r.stockOf(first).Held = n
	case "stock_sold":
		r.stockOf(first).Sold = n
	case "stock_free":
		r.stockOf(first).Free = n
	case "sku_stock_left":
		r.notCounted[first] = n
	case "hot_sku_requests":
		r.hot[first] = n
	}
}

func (r *reading) stockOf(sku string) *StockSecond {
	if r.stock[sku] == nil {
		r.stock[sku] = &StockSecond{SKU: sku}
	}
	return r.stock[sku]
}

// valueOf is the value of a counter or a gauge, which count whole things here.
func valueOf(m *dto.Metric) int64 {
	v := m.GetCounter().GetValue() + m.GetGauge().GetValue() // one of them is there
	if math.IsNaN(v) || math.Abs(v) > 1<<62 {
		return 0
	}
	return int64(v)
}

// label is the value of the i-th label; "" = there are fewer.
func label(m *dto.Metric, i int) string {
	if i < len(m.GetLabel()) {
		return m.GetLabel()[i].GetValue()
	}
	return ""
}

// histograms are those of one metric, by their label.
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
