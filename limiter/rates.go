package limiter

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Rates are the keyed rates in force. A change of configuration keeps the table of each rate that goes on to count the
// same keys in as much memory: nobody gets a new burst by it.
//
// It is safe for concurrent use.
type Rates struct {
	now     func() int64
	mu      sync.Mutex
	inForce []*Rate
}

// NewRates returns Rates with none in force. now is the callers' clock: what metrics show is of that instant.
func NewRates(now func() int64) *Rates { return &Rates{now: now} }

// Prepare makes the rates of specs, in their order, and puts none of them into force.
func (s *Rates) Prepare(specs []RateSpec) []*Rate {
	s.mu.Lock()
	defer s.mu.Unlock()
	rates := make([]*Rate, len(specs))
	for i, spec := range specs {
		rates[i] = newRate(spec, s.kept(spec))
	}
	return rates
}

// kept finds the table that goes on, or makes one.
func (s *Rates) kept(spec RateSpec) *cells {
	for _, r := range s.inForce {
		if r.spec.Name == spec.Name && r.spec.Of == spec.Of && r.keys == spec.MaxKeys {
			return r.cells
		}
	}
	return newCells(spec.MaxKeys)
}

// Use puts prepared rates into force, in place of those before.
func (s *Rates) Use(rates []*Rate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inForce = rates
}

func rateFill() *prometheus.Desc {
	return describe("sluice_rate_table_fill_ratio", "Part of a keyed rate's table that holds what has not been earned back, by a sample; above 0.5 false refusals become likely: raise max_keys.", "rate")
}

func rateBytes() *prometheus.Desc {
	return describe("sluice_rate_table_bytes", "Memory of a keyed rate's table, which max_keys fixes.", "rate")
}

// Describe implements [prometheus.Collector].
func (s *Rates) Describe(to chan<- *prometheus.Desc) {
	to <- rateFill()
	to <- rateBytes()
}

// Collect implements [prometheus.Collector].
func (s *Rates) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	rates := s.inForce
	s.mu.Unlock()
	now := s.now()
	for _, r := range rates {
		collect(to, rateFill(), prometheus.GaugeValue, r.fill(now), r.spec.Name)
		collect(to, rateBytes(), prometheus.GaugeValue, float64(r.bytes()), r.spec.Name)
	}
}
