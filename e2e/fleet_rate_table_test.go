package e2e

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// The shares of docs/fleet.md, with processes, a Redis and real time, takes 5 minutes. Four times the rate of
// a key comes, or twice where an instance or Redis goes away.
func TestFleet_TableOfMeasuredAgainstWanted(t *testing.T) {
	testkit.Nightly(t, "it measures rates over real time, for 5 minutes")
	for n := 1; n <= 4; n++ {
		t.Run(fmt.Sprint(n, " instances"), func(t *testing.T) {
			m := &fleetMeter{t: t, redis: redistest.Start(t), shop: openDated(t)}
			for range n {
				m.add()
			}
			for _, name := range []string{"even", "first", "last", "alone"} {
				var shares []float64
				for i := range n {
					share := map[string]float64{"even": 1, "first": math.Pow(0.3, float64(i)),
						"last": math.Pow(0.3, float64(n-1-i))}[name]
					if name == "alone" && i == n/2 {
						share = 1
					}
					shares = append(shares, share)
				}
				end := m.crowd(name, 4, shares...)
				m.row(name, 3, 10)
				end()
			}
		})
	}
	t.Run("events", func(t *testing.T) {
		m := &fleetMeter{t: t, redis: redistest.Start(t), shop: openDated(t)}
		a, b, c := m.add(), m.add(), m.add()
		defer m.crowd("k", 2, 1, 1, 1)()
		m.row("three", 3, 10)
		c.die()
		m.row("one of three is killed", 3, 10)
		m.gates = []*running{a, b}
		m.add()
		defer m.crowd("k", 2./3, 0, 0, 1)()
		m.row("one is added", 3, 10)
		m.redis.Kill()
		m.row("Redis is away", 3, 10) // each has a third, and is asked for at least as much
		m.redis.Restart()             // empty
		m.row("Redis is back, and empty", 3, 10)
	})
}

// fleetMeter counts what instances with one rate of 100/s of each host admit together.
type fleetMeter struct {
	t     *testing.T
	redis *redistest.Server
	shop  *dated
	gates []*running
}

func (m *fleetMeter) add() *running {
	m.t.Helper()
	g := gate(m.t, m.shop.shop.setting(), `stock.source = "off"`, "stock.redis.addresses = "+quoted(m.redis.Addr),
		unlimited, "limits.window.max_per_sku = 0",
		"[[limits.rate]]\nname = \"all\"\nkey = \"$host\"\nscope = \"fleet\"\nrate = \"100/s\"\nburst = 20", fleetRoute)
	m.gates = append(m.gates, g)
	counts(m.t, float64(len(m.gates)), m.gates...)
	return g
}

// crowd asks for a host, so many times its rate at all gates together, by their shares, until the returned function is
// called.
func (m *fleetMeter) crowd(host string, times float64, shares ...float64) (end func()) {
	sum := 0.0
	for _, s := range shares {
		sum += s
	}
	var all sync.WaitGroup
	stop := make(chan struct{})
	for i, s := range shares {
		if s > 0 {
			crowdedWith(m.t, &all, m.gates[i].front, "GET /x HTTP/1.1\r\nHost: "+host+"\r\n\r\n", int(100*times*s/sum), stop)
		}
	}
	return func() {
		close(stop)
		all.Wait()
	}
}

// row prints what was admitted in the next seconds, and in those behind them, in parts of the rate.
func (m *fleetMeter) row(name string, first, then int) {
	m.t.Helper()
	var parts []float64
	for _, seconds := range []int{first, then} {
		from := time.Now()
		time.Sleep(time.Duration(seconds) * time.Second) // what is measured
		n, passed := m.shop.since(from), time.Since(from).Seconds()
		parts = append(parts, float64(n)/(100*passed))
	}
	m.t.Logf("| %s | %.2f | %.2f |", name, parts[0], parts[1])
	if parts[1] < 0.9 || parts[1] > 1.15 {
		m.t.Errorf("%s: %.2f of the rate", name, parts[1])
	}
}
