package room

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are what this instance has answered.
type counts struct{ joined, passed, polls, failed atomic.Uint64 }

// Rooms are the rooms of an instance, for metrics.
type Rooms []*Room

var (
	phaseDesc = prometheus.NewDesc("sluice_room_phase", "The phase of each waiting room: 1 for its phase, 0 for the "+
		"others.",
		[]string{"room", "phase"}, nil)
	peopleDesc = prometheus.NewDesc("sluice_room_people",
		"People of a waiting room, as all instances count them: numbers issued, people who joined, who wait, who were "+
			"called "+
			"and may still claim (pending), people called, passes claimed, used, expired, and inside, of which an order is "+
			"expected.", []string{"room", "state"}, nil)
	unitsDesc = prometheus.NewDesc("sluice_room_units",
		"Units of a waiting room's sale: free, held by orders, and off_sale, of SKUs that are paused or closed. Missing "+
			"while the stock is not known.",
		[]string{"room", "state"}, nil)
	mostDesc = prometheus.NewDesc("sluice_room_parked_limit",
		"Requests of this instance that may wait for news: max_parked.",
		[]string{"room"}, nil)
	parkedDesc = prometheus.NewDesc("sluice_room_parked", "Requests of this instance that wait for news of a waiting "+
		"room.",
		[]string{"room"}, nil)
	answersDesc = prometheus.NewDesc("sluice_room_answers_total",
		"Answers of this instance at the addresses of a waiting room: joins, passes, polls, and joins or passes that "+
			"Redis did not count.", []string{"room", "kind"}, nil)
	staleDesc = prometheus.NewDesc("sluice_room_age_seconds",
		"How long ago this instance read the waiting room from Redis.",
		[]string{"room"}, nil)
)

var phases = [...]Phase{Closed, PreQueue, Drawing, Open, LastChance, Over, Hold,
	Drain, Off}

// Describe implements prometheus.Collector.
func (all Rooms) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{phaseDesc, peopleDesc, unitsDesc, parkedDesc, mostDesc, answersDesc, staleDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (all Rooms) Collect(ch chan<- prometheus.Metric) {
	for _, r := range all {
		r.collect(ch)
	}
}

func (r *Room) collect(ch chan<- prometheus.Metric) {
	s, name := r.view.Load().state, r.o.Rules.Name
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{name}, labels...)...)
	}
	for _, p := range phases {
		is := 0.0
		if p == s.Phase {
			is = 1
		}
		gauge(phaseDesc, is, string(p))
	}
	for state, n := range map[string]int64{"issued": s.Issued, "people": s.People, "waiting": s.Waiting(),
		"pending": s.Pending(&r.o.Rules), "called": s.Called, "claimed": s.Claimed, "used": s.Used, "expired": s.Expired,
		"inside": s.Inside} {
		gauge(peopleDesc, float64(n), state)
	}
	if s.Known {
		gauge(unitsDesc, float64(s.Free), "free")
		held, offSale := r.Later(s)
		gauge(unitsDesc, float64(held), "held")
		gauge(unitsDesc, float64(offSale), "off_sale")
	}
	gauge(mostDesc, float64(r.most))
	gauge(parkedDesc, float64(r.count()))
	gauge(staleDesc, float64(max(r.o.Now()-s.At, 0))/1000)
	for kind, n := range map[string]*atomic.Uint64{"join": &r.joined, "pass": &r.passed, "poll": &r.polls,
		"failed": &r.failed} {
		ch <- prometheus.MustNewConstMetric(answersDesc, prometheus.CounterValue, float64(n.Load()), name, kind)
	}
}
