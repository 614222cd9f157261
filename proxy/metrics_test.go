package proxy

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Two series of one name and labels make the whole page of metrics an error.
func TestEveryRouteHasMetricsOfItsOwn(t *testing.T) {
	o := options(&seen{})
	o.Routes = []Route{{Name: "none", Match: "/", Gate: Pass}}
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), `route "none": name`) {
		t.Errorf("a route with the name of those that no route takes: %v", err)
	}
	p, err := New(options(&seen{}))
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(p)
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}
