package metrics

import "sluice/proxy/reject"

// Traffic is the sums that the dashboard reads once a second. It leaves out the series of every route, status and
// reason, of which nearly all are 0.
type Traffic struct {
	Requests           int64                    // answered, by the upstream or here
	Rejected, Observed [reject.NumReasons]int64 // requests, by reject.Reason
	Causes             [reject.NumCauses]int64  // of the rejected that have one, by reject.Cause
	Routes             []RouteTraffic           // sorted by name; routes that a reload removed are included
	Rates              []RateTraffic            // in no order
}

// RouteTraffic is the part of one route: answered and rejected requests.
type RouteTraffic struct {
	Route              string
	Requests, Rejected int64
}

// RateTraffic is how many requests one keyed rate limit rejected, or would have rejected.
type RateTraffic struct {
	Rate               string
	Rejected, Observed int64
}

// Traffic adds up the shards. It allocates the two lists only.
func (c *Counters) Traffic() (t Traffic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Routes = make([]RouteTraffic, 0, len(c.names))
	for _, name := range c.names {
		t.addRoute(name, c.routes[name])
	}
	t.Rates = make([]RateTraffic, 0, len(c.rates))
	for name, shards := range c.rates {
		rejected, observed := sumRate(shards)
		t.Rates = append(t.Rates, RateTraffic{name, int64(rejected), int64(observed)})
	}
	t.Causes = c.sumCauses()
	return t
}

func (c *Counters) sumCauses() (counts [reject.NumCauses]int64) {
	for i := range c.shards {
		for cause := range counts {
			counts[cause] += int64(c.shards[i].details[cause].Load())
		}
	}
	return counts
}

func (t *Traffic) addRoute(name string, shards []RouteShard) {
	r := RouteTraffic{Route: name}
	for i := range shards {
		for code := range shards[i].statuses {
			r.Requests += int64(shards[i].statuses[code].Load())
		}
		for reason := range t.Rejected {
			n := int64(shards[i].rejected[reason].Load())
			r.Rejected += n
			t.Rejected[reason] += n
			t.Observed[reason] += int64(shards[i].observed[reason].Load())
		}
	}
	t.Requests += r.Requests
	t.Routes = append(t.Routes, r)
}

func sumRate(shards []RateShard) (rejected, observed uint64) {
	for i := range shards {
		rejected += shards[i].rejected.Load()
		observed += shards[i].observed.Load()
	}
	return rejected, observed
}

// Totals are the counts since the start, for the once-a-second summary of the access log.
type Totals struct {
	Rejected  [reject.NumReasons]uint64 // requests, by reject.Reason; a server adds its rejected connections
	Forwarded uint64                    // requests, whatever their outcome
}

// Totals adds up all routes, including those that a reload removed.
func (c *Counters) Totals() (t Totals) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, shards := range c.routes {
		for i := range shards {
			for reason := range t.Rejected {
				t.Rejected[reason] += shards[i].rejected[reason].Load()
			}
			t.Forwarded += shards[i].forwarded.Load()
		}
	}
	return t
}
