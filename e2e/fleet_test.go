package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// dated is a shop that writes down when each request came.
type dated struct {
	shop  *shop
	start time.Time

	mu sync.Mutex
	at []time.Duration // since start, ascending
}

func openDated(t *testing.T) *dated {
	t.Helper()
	d := &dated{start: time.Now()}
	d.shop = open(t, func(w http.ResponseWriter, _ *http.Request) {
		d.mu.Lock()
		d.at = append(d.at, time.Since(d.start))
		d.mu.Unlock()
		_, _ = io.WriteString(w, "searched")
	})
	return d
}

// since counts what came after an instant.
func (d *dated) since(from time.Time) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.at) - 1; i >= 0 && d.at[i] >= from.Sub(d.start); i-- {
		n++
	}
	return n
}

// crowdedWith sends a request to a gate again and again over some connections, at a steady rate whatever the answers,
// until stop is closed or the gate goes away.
func crowdedWith(t *testing.T, all *sync.WaitGroup, address, request string, perSecond int, stop <-chan struct{}) {
	const connections, beat = 4, 2 * time.Millisecond
	for range connections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		all.Go(func() {
			defer c.Close()
			_, _ = io.Copy(io.Discard, c) // until the gate has answered all
		})
		all.Go(func() {
			defer c.(*net.TCPConn).CloseWrite()
			tick := time.NewTicker(beat)
			defer tick.Stop()
			start, sent := time.Now(), 0
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				due := int(time.Since(start).Seconds()*float64(perSecond)/connections) - sent
				if _, err := io.WriteString(c, strings.Repeat(request, due)); err != nil {
					return
				}
				sent += due
			}
		})
	}
}

// counts waits until each gate counts so many instances.
func counts(t *testing.T, want float64, gates ...*running) {
	t.Helper()
	for _, g := range gates {
		soon(t, "the instances are counted", func() bool { return g.metric("sluice_fleet_instances") == want })
	}
}

const fleetRoute = "[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\""

// Two shops on one Redis are told apart by their names: each has all of its limit, and its overrides are its own.
func TestFleet_ShopsOnOneRedisShareNoLimit(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), open(t, nil)
	var gates [2]*running
	for i := range gates {
		gates[i] = gate(t, shop.setting(), `stock.source = "off"`, "stock.redis.addresses = "+quoted(redis.Addr),
			fmt.Sprintf("name = \"shop-%d\"", i), "limits.window.scope = \"fleet\"",
			"limits.concurrency.scope = \"fleet\"", signed(t),
			"limits.concurrency.max_in_flight = 100", fleetRoute)
	}
	counts(t, 1, gates[:]...)
	for i, g := range gates {
		if n := g.mostInFlight(); n != 100 {
			t.Errorf("shop %d may have %v in flight, want all of its 100", i, n)
		}
		g.prints(t, fmt.Sprintf("override set limits.concurrency.max_in_flight %d --for 10m", 30+i), "all instances")
	}
	for i, g := range gates {
		soon(t, "its own override is in force", func() bool { return g.mostInFlight() == float64(30+i) })
		var listed struct{ Overrides []struct{ ID string } }
		if g.told("GET", "/overrides", "", &listed); len(listed.Overrides) != 1 {
			t.Errorf("shop %d has %+v, want its own override alone", i, listed)
		}
	}
}

// Each of two instances has a half of what the fleet may have in the shop. They keep their halves while Redis is away.
// One that is alone has all.
func TestFleet_EachInstanceHasItsPartOfALimit(t *testing.T) {
	t.Parallel()
	redis, shop := redistest.Start(t), open(t, nil)
	var gates [2]*running
	for i := range gates {
		gates[i] = gate(t, shop.setting(), `stock.source = "off"`, "stock.redis.addresses = "+quoted(redis.Addr),
			"limits.concurrency.scope = \"fleet\"", "limits.concurrency.max_in_flight = 100", fleetRoute)
	}
	for _, g := range gates {
		soon(t, "each has a half", func() bool { return g.mostInFlight() == 50 })
	}
	redis.Kill()
	for _, g := range gates {
		soon(t, "the loss is noticed", func() bool { return g.metric("sluice_fleet_up") == 0 })
		if n := g.mostInFlight(); n != 50 {
			t.Errorf("%v in flight while Redis is away, want 50", n)
		}
	}
	redis.Restart()
	gates[1].terminate()
	gates[1].stopped()
	soon(t, "the one that is left has all", func() bool { return gates[0].mostInFlight() == 100 })
}
