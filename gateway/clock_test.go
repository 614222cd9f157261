package gateway

import (
	"testing"
	"time"

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
	health := func() (found admin.Health) {
		for _, c := range g.Checks() {
			if c.Name == "clock" {
				_, found = c.Probe()
				return found
			}
		}
		t.Fatal("the clocks are not compared")
		return found
	}
	testkit.Want(t, "clocks that agree", health(), admin.Healthy)
	for _, wrong := range []time.Duration{10 * time.Second, -10 * time.Minute} {
		turn(wrong)
		testkit.Eventually(t, "it is degraded", func() bool { return health() == admin.Degraded })
		turn(0)
		testkit.Eventually(t, "it is well again", func() bool { return health() == admin.Healthy })
	}
}
