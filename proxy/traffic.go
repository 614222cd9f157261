package proxy

import "slices"

// Traffic is what has been counted since the start, as far as somebody looks at it once a second: he is spared the series of every
// route, status and reason, nearly all of which are 0.
type Traffic struct {
	Requests          int64             // answered, by the shop or here
	Refused, Observed [numReasons]int64 // of these: by Reason
	Routes            []RouteTraffic    // by name; those that a reload has dropped included
	Rates             []RateTraffic
}

// RouteTraffic is one route's part.
type RouteTraffic struct {
	Route             string
	Requests, Refused int64
}

// RateTraffic is what one keyed rate refused, and what it would have.
type RateTraffic struct {
	Rate              string
	Refused, Observed int64
}

// Traffic adds up the shards, as Collect does.
func (p *Proxy) Traffic() (t Traffic) {
	c := p.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Routes = make([]RouteTraffic, 0, len(c.names))
	for _, name := range c.names {
		t.addRoute(name, c.routes[name])
	}
	t.Rates = make([]RateTraffic, 0, len(c.rates))
	for name, tallies := range c.rates {
		r := RateTraffic{Rate: name}
		for i := range tallies {
			r.Refused += int64(tallies[i].refused.Load())
			r.Observed += int64(tallies[i].observed.Load())
		}
		t.Rates = append(t.Rates, r)
	}
	return t
}

func (t *Traffic) addRoute(name string, tallies []tally) {
	r := RouteTraffic{Route: name}
	for i := range tallies {
		r.Requests += int64(tallies[i].answered())
		for reason := range t.Refused {
			n := int64(tallies[i].refused[reason].Load())
			r.Refused += n
			t.Refused[reason] += n
			t.Observed[reason] += int64(tallies[i].observed[reason].Load())
		}
	}
	t.Requests += r.Requests
	t.Routes = append(t.Routes, r)
}

// answered is how many answers of all statuses were counted.
func (t *tally) answered() (n uint64) {
	n = t.rare.Load()
	for class := range t.codes {
		for i := range t.codes[class] {
			n += t.codes[class][i].Load()
		}
	}
	return n
}

// list puts a new route's name among the others.
func (c *counts) list(name string) {
	at, _ := slices.BinarySearch(c.names, name)
	c.names = slices.Insert(c.names, at, name)
}
