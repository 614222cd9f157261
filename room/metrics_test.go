package room

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// gauges are the values of the room's gauges by name and, where there is one, state.
func (s *stand) gauges(t *testing.T) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(Rooms{s.Room})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				if l.GetName() == "state" {
					name += " " + l.GetValue()
				}
			}
			values[name] = m.GetGauge().GetValue()
		}
	}
	return values
}

// The alerts read of these gauges whether people could be called and are not.
func TestMetrics_TellWhatCallingPeopleWaitsFor(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.Start(t), nil)
	s.inPhase(t, Open)
	for _, user := range []string{"a", "b", "c"} {
		(&person{user: user}).ask(t, s, true, "join", "")
	}
	testkit.Eventually(t, "two of three are called", func() bool {
		state := s.view.Load().state
		return state.Called == 2 && state.Issued == 3
	})
	got := s.gauges(t)
	for name, want := range map[string]float64{"sluice_room_people waiting": 1, "sluice_room_people pending": 2,
		"sluice_room_people inside": 0, "sluice_room_units free": 2, "sluice_room_units held": 0,
		"sluice_room_units off_sale": 0, "sluice_room_parked_limit": 100} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v, want %v", name, value, want)
		}
	}
	unknown := open(t, redistest.Start(t), func(o *Options) {
		o.Stock = func() *KnownStock { return &KnownStock{} }
	})
	if value, ok := unknown.gauges(t)["sluice_room_units free"]; ok {
		t.Errorf("units are %v though the stock is not known", value)
	}
}
