package gateway

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
)

// The dashboard says of a gate what its page of metrics says: of whatever it reads, no series is missing, and none is
// another.
func TestApp_TheDashboardMissesNoMetricThatItReads(t *testing.T) {
	t.Parallel()
	reads := map[string]bool{}
	named := regexp.MustCompile(`(?:series|times|total|rose|took)[\[(]"([a-z_]+)"[\])]`)
	for _, file := range []string{"reading.go", "second.go", "history.go"} {
		code, err := os.ReadFile("../admin/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range named.FindAllStringSubmatch(string(code), -1) {
			reads["sluice_"+found[1]] = true
		}
	}
	redis := redistest.Start(t)
	redis.Client.Set(t.Context(), "seckill:stock:2001", 7, 0)
	c := storetest.Reserving(redis.Addr)
	c.Upstream.Targets = []string{"http://127.0.0.1:9"}
	c.Routes[0].MaxInFlight = 5
	c.Routes = append(c.Routes, config.Route{Name: "checked", Match: "/checked/{sku}", Gate: "check", SKU: "$path_sku"},
		config.Route{Name: "pages", Match: "/", Gate: "pass"})
	g := gatewayOf(t, c)
	if _, err := g.Orders().Store.SetTotal(t.Context(), "1001", 5, 0); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the ledger has been audited",
		func() bool { return spelled(t, g.Metrics)[`sluice_stock_free "1001"`] })
	g.proxy.Counters().Shard().CountSKU([]byte("2001"), false, g.now())
	testkit.Eventually(t, "the hot SKU has been read",
		func() bool { return spelled(t, g.Metrics)[`sluice_sku_stock_left "2001"`] })
	all, shown := spelled(t, g.Metrics), spelled(t, g.dashboardMetrics())
	later := spelled(t, g.Metrics) // series may begin meanwhile
	maps.DeleteFunc(all, func(name string, _ bool) bool { return !reads[strings.Fields(name)[0]] })
	missing := maps.Clone(reads)
	for name := range all {
		delete(missing, strings.Fields(name)[0])
		if !shown[name] {
			t.Errorf("%s is not read", name)
		}
	}
	if len(missing) > 0 || len(reads) < 10 {
		t.Errorf("no metric of the gate is called %v", missing)
	}
	for name := range shown {
		if reads[strings.Fields(name)[0]] && !later[name] {
			t.Errorf("%s is of no metric", name)
		}
	}
}

// spelled are the names and labels of all metrics.
func spelled(t *testing.T, of prometheus.Gatherer) map[string]bool {
	t.Helper()
	families, err := of.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, label := range m.GetLabel() {
				name += " " + `"` + label.GetValue() + `"`
			}
			all[name] = true
		}
	}
	return all
}

// What the dashboard reads does not grow with the routes.
func TestApp_TheDashboardReadsAsMuchWithManyRoutes(t *testing.T) {
	reads := func(routes int) int {
		c := config.Default()
		c.Upstream.Targets = []string{"http://127.0.0.1:9"}
		for i := range routes {
			name := strings.Repeat("r", i+1)
			c.Routes = append(c.Routes, config.Route{Name: name, Match: "/" + name, Gate: "limit", MaxInFlight: 5})
		}
		g := gatewayOf(t, c)
		return len(spelled(t, g.dashboardMetrics()))
	}
	if few, many := reads(1), reads(100); few != many {
		t.Errorf("%d series with one route, %d with a hundred", few, many)
	}
}
