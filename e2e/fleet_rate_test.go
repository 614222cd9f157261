package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// rated wants a second in which the shop gets so many requests, to within a tenth. A machine that is busy with other
// things needs another try.
func (d *dated) rated(t *testing.T, when string, perSecond float64) {
	t.Helper()
	var heard []string
	for range 30 {
		from := time.Now()
		time.Sleep(time.Second) // what is measured
		n, whole := float64(d.since(from)), time.Since(from).Seconds()*perSecond
		heard = append(heard, fmt.Sprintf("%.0f of %.0f", n, whole))
		if n >= 0.9*whole && n <= 1.1*whole {
			t.Logf("%s: %v", when, heard)
			return
		}
	}
	t.Errorf("%s: %q came; want all to within a tenth", when, heard)
}

// Two instances that are asked unevenly keep one rate of a key together, and each has a half of the requests in flight.
// While Redis is away each has a half of the rate.
func TestFleet_KeepsARateTogether(t *testing.T) {
	testkit.Nightly(t, "it measures rates over real time")
	const perSecond, burst = 200, 20
	redis, shop := redistest.Start(t), openDated(t)
	var crowd sync.WaitGroup
	stop := make(chan struct{})
	defer crowd.Wait()
	defer close(stop)
	var gates [2]*running
	for i := range gates {
		gates[i] = gate(t, shop.shop.setting(), `stock.source = "off"`, "stock.redis.addresses = "+quoted(redis.Addr),
			unlimited, "limits.window.max_per_sku = 0", "limits.concurrency.scope = \"fleet\"",
			"limits.concurrency.max_in_flight = 100",
			"[[limits.rate]]\nname = \"all\"\nkey = \"$host\"\nscope = \"fleet\"\nrate = \"200/s\"\nburst = 20", fleetRoute)
	}
	for _, g := range gates {
		soon(t, "each has a half", func() bool {
			return g.metric("sluice_fleet_instances") == 2 && g.metric("sluice_upstream_in_flight_limit") == 50
		})
	}
	crowded(t, &crowd, gates[0].front, 3*perSecond, stop)
	crowded(t, &crowd, gates[1].front, perSecond/2, stop)
	shop.rated(t, "asked unevenly", perSecond)
	redis.Kill()
	shop.rated(t, "Redis is away", perSecond)
	most, bound := shop.worst(time.Second), perSecond*11/10+2*burst+shop.caughtUp(perSecond)
	if t.Logf("at most %d within any second", most); most > bound {
		t.Errorf("%d came within a second, more than %d", most, bound)
	}
}
