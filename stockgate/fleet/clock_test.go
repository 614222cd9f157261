package fleet

import (
	"slices"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// By the clock of a Redis that has stepped ahead, or of another one that took over, changes are over of which the
// instances think that they hold. They are not put back again and again, and what is changed from then on is heard.
func TestFleet_ChangeThatIsOverByRedisClockAloneIsLetGo(t *testing.T) {
	t.Parallel()
	server, turn := redistest.StartWithClock(t)
	a, b := join(t, server.Addr, "a"), join(t, server.Addr, "b")
	testkit.Must[Change](t)(a.Put(t.Context(), "key mode", "observe", time.Hour, 0))
	testkit.Eventually(t, "b knows it", func() bool { return slices.Equal(b.names(), []string{"key mode=observe"}) })
	turn(90 * time.Minute)
	testkit.Must[Change](t)(a.Put(t.Context(), "sku 1001", "paused", time.Hour, 0))
	for _, one := range []*told{a, b} {
		testkit.Eventually(t, "it knows what holds by that clock", func() bool {
			return slices.Equal(one.names(), []string{"sku 1001=paused"})
		})
	}
}
