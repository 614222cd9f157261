package gateway

import (
	"math"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"sluice/admin"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
)

// An instance whose clock is wrong takes reservations of others for overdue, or gives deadlines that are over. Its clock
// is compared without a sale, too.
func TestReadiness_ClockThatIsWrongIsToldWithoutASale(t *testing.T) {
	t.Parallel()
	redis, turn := redistest.StartWithClock(t)
	c := storetest.Reserving(redis.Addr)
	c.Upstream.Targets = []string{"http://127.0.0.1:1"}
	g := gatewayOf(t, c)
	testkit.Check(t, g.fleet.join())
	t.Cleanup(g.fleet.close)
	health := func() admin.Health {
		_, found := probed(t, g, "clock")
		return found
	}
	testkit.Eventually(t, "the clocks are compared", func() bool {
		says, _ := probed(t, g, "clock")
		return says != "not compared"
	})
	skew := func() (seconds float64) {
		for _, family := range testkit.Must[[]*dto.MetricFamily](t)(g.Metrics.Gather()) {
			if family.GetName() == "sluice_sale_clock_skew_seconds" {
				seconds = family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return seconds
	}
	testkit.Want(t, "clocks that agree", health(), admin.Healthy)
	for _, wrong := range []time.Duration{10 * time.Second, -10 * time.Minute} {
		turn(wrong)
		testkit.Eventually(t, "it is degraded", func() bool { return health() == admin.Degraded })
		if ahead := skew(); math.Abs(ahead-wrong.Seconds()) > 2 {
			t.Errorf("the metric says %v s, and the clock is %v ahead", ahead, wrong)
		}
		turn(0)
		testkit.Eventually(t, "it is well again", func() bool { return health() == admin.Healthy })
	}
}
