package proxy

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Two series of one name and labels would make the whole page of metrics an error.
func TestProxy_MetricsOfRoutesAndRatesAreDistinct(t *testing.T) {
	o := options(&recorder{})
	o.Routes = []Route{{Name: "none", Match: "/"}}
	var at *RouteError
	if _, err := New(o); !errors.As(err, &at) || at.Key != "name" || !strings.Contains(err.Error(), `route "none"`) {
		t.Errorf("a route with the name of requests that match no route: %v", err)
	}
	o = options(&recorder{})
	o.Rates = []KeyedRate{
		{Name: "a", Key: "$cookie_uid", Limiter: usedUp{}},
		{Name: "b", Key: "$cookie_uid", Limiter: usedUp{}, Routes: []string{"order", "rest"}},
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(p.Counters(), NewServer(p, ServerOptions{}).Collector())
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}
