package main

import "github.com/prometheus/client_golang/prometheus"

// routeInFlight, routeLimit and routeQueue are of routes that have places of their own; their names are the file's.
func routeInFlight() *prometheus.Desc {
	return prometheus.NewDesc("sluice_route_in_flight", "Requests of a route that has a max_in_flight of its own, inside the shop or waiting for a place of all.", []string{"route"}, nil)
}

func routeLimit() *prometheus.Desc {
	return prometheus.NewDesc("sluice_route_in_flight_limit", "The route's max_in_flight; 0 = no cap of its own.", []string{"route"}, nil)
}

func routeQueue() *prometheus.Desc {
	return prometheus.NewDesc("sluice_route_queue_length", "Requests that wait for one of the route's own places.", []string{"route"}, nil)
}

// Describe implements [prometheus.Collector].
func (in *inFlight) Describe(to chan<- *prometheus.Desc) {
	in.all.Describe(to)
	to <- routeInFlight()
	to <- routeLimit()
	to <- routeQueue()
}

// Collect implements [prometheus.Collector].
func (in *inFlight) Collect(to chan<- prometheus.Metric) {
	in.all.Collect(to)
	in.mu.Lock()
	defer in.mu.Unlock()
	for name, own := range in.routes {
		for desc, n := range map[*prometheus.Desc]int{routeInFlight(): own.InFlight(), routeLimit(): own.Max(), routeQueue(): own.Queued()} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), name)
		}
	}
}
