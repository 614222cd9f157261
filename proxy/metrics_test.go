package proxy

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// counted is what the page of metrics would show, as "name label label", labels in the order of their names.
func counted(t *testing.T, of prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(of)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			shown[name] = m.GetCounter().GetValue()
		}
	}
	return shown
}

// Two series of one name and labels make the whole page of metrics an error.
func TestEveryRouteHasMetricsOfItsOwn(t *testing.T) {
	o := options(&seen{})
	o.Routes = []Route{{Name: "none", Match: "/", Gate: Pass}}
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), `route "none": name`) {
		t.Errorf("a route with the name of those that no route takes: %v", err)
	}
	o = options(&seen{})
	o.Rates = []KeyedRate{keyed("a", "$remote_addr", 1), keyed("b", "$remote_addr", 1, "order", "rest")}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(p)
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}
