package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// dated is a shop that writes down when each request came.
type dated struct {
	shop  *shop
	start time.Time
	still atomic.Int64 // ns; the longest time for which this process stood still

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
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for last := time.Now(); t.Context().Err() == nil; last = time.Now() {
			<-tick.C
			d.still.Store(max(d.still.Load(), int64(time.Since(last))))
		}
	}()
	return d
}

// caughtUp is how many requests of so many a second can have come later than they were sent, all at once: those of the
// longest time for which this process stood still.
func (d *dated) caughtUp(perSecond int) int {
	return int(time.Duration(d.still.Load()).Seconds() * float64(perSecond))
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

// worst is the most that came within any stretch of that length.
func (d *dated) worst(length time.Duration) (most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := 0
	for i, at := range d.at {
		for at-d.at[first] >= length {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// crowded sends requests to a gate over some connections, at a steady rate whatever the answers, until stop is closed
// or the gate goes away.
func crowded(t *testing.T, all *sync.WaitGroup, address string, perSecond int, stop <-chan struct{}) {
	crowdedWith(t, all, address, "GET /x HTTP/1.1\r\nHost: shop\r\n\r\n", perSecond, stop)
}

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

// crowdedFor is crowded for so long, and returns when everything that was sent has its answer.
func crowdedFor(t *testing.T, address string, perSecond int, length time.Duration) {
	t.Helper()
	var all sync.WaitGroup
	stop := make(chan struct{})
	crowded(t, &all, address, perSecond, stop)
	time.Sleep(length) // the load
	close(stop)
	all.Wait()
}

// steady wants a second in which the shop gets the budget of the gates, perWindow in 10 ms, to within 5 %. A machine
// that is busy with other things lets windows pass unused; then those that were used, and those that were full, must
// have had the parts that sum up to the budget, to within 5 %. Without any such second the law is broken.
func (d *dated) steady(t *testing.T, when string, perWindow int, gates ...*running) {
	t.Helper()
	windows := func(name string) (n float64) {
		for _, g := range gates {
			n += g.metric(name, `of="all"`)
		}
		return n
	}
	var heard []string
	for range 30 {
		from, used, full := time.Now(), windows("sluice_windows_total"), windows("sluice_windows_saturated_total")
		time.Sleep(time.Second) // what is measured
		n, whole := float64(d.since(from)), time.Since(from).Seconds()*float64(perWindow*100)
		used, full = windows("sluice_windows_total")-used, windows("sluice_windows_saturated_total")-full
		part := float64(perWindow) / float64(len(gates))
		said := fmt.Sprintf("%.0f of %.0f came in %.0f windows, %.0f of them full", n, whole, used, full)
		heard = append(heard, said)
		even := n <= 1.05*used*part && n >= 0.95*full*part && full > used/2
		if n <= 1.05*whole && (n >= 0.95*whole || even) {
			t.Logf("%s: %s", when, said)
			return
		}
	}
	t.Errorf("%s: %q; want all to within 5 %%", when, heard)
}

// counts waits until each gate counts so many instances.
func counts(t *testing.T, want float64, gates ...*running) {
	t.Helper()
	for _, g := range gates {
		soon(t, "the instances are counted", func() bool { return g.metric("sluice_fleet_instances") == want })
	}
}

const fleetRoute = "[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\""

// Three instances share one budget that three does not divide. One is killed and one is added, under load.
func TestFleet_KeepsOneBudget(t *testing.T) {
	testkit.Nightly(t, "it measures rates over real time")
	const perWindow, perSecond = 5, 500
	redis, shop := redistest.Start(t), openDated(t)
	var crowd sync.WaitGroup
	stop := make(chan struct{})
	defer crowd.Wait()
	defer close(stop)
	add := func() *running {
		g := gate(t, shop.shop.setting(), redisAt(redis), unlimited, "limits.window.scope = \"fleet\"",
			"limits.window.max = 5", "limits.window.max_per_sku = 0", "limits.window.max_delay = \"0s\"", fleetRoute)
		crowded(t, &crowd, g.front, perSecond, stop)
		return g
	}
	a, b, c := add(), add(), add()
	counts(t, 3, a, b, c)
	shop.steady(t, "three instances", perWindow, a, b, c)

	c.mortal = true
	if err := c.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	counts(t, 2, a, b)
	shop.steady(t, "one was killed", perWindow, a, b)

	c = add()
	counts(t, 3, a, b, c)
	shop.steady(t, "one was added", perWindow, a, b, c)

	if most, bound := shop.worst(time.Second), perSecond*4/3+2*perWindow+shop.caughtUp(perSecond); most > bound {
		t.Errorf("%d came within a second, more than %d", most, bound)
	} else {
		t.Logf("at most %d within any second", most)
	}
	a.terminate()
	a.stopped()
	b.terminate()
	b.stopped()
	soon(t, "one is on the list after two of three have left",
		func() bool { return redis.Client.ZCard(t.Context(), "sluice:shop:fleet:{shop}:members").Val() == 1 })
}

// The last known number stands while Redis is away: the two go on with a half each.
func TestFleet_WithoutRedisEachInstanceKeepsItsShare(t *testing.T) {
	testkit.Nightly(t, "it measures rates over real time")
	const perSecond = 500
	redis, shop := redistest.Start(t), openDated(t)
	var crowd sync.WaitGroup
	stop := make(chan struct{})
	defer crowd.Wait()
	defer close(stop)
	var gates [2]*running
	for i := range gates {
		gates[i] = gate(t, shop.shop.setting(), `stock.source = "off"`, "stock.redis.addresses = "+quoted(redis.Addr),
			unlimited,
			"limits.window.scope = \"fleet\"", "limits.window.max = 5", "limits.window.max_per_sku = 0",
			"limits.window.max_delay = \"0s\"", fleetRoute)
	}
	counts(t, 2, gates[:]...)
	for _, g := range gates {
		crowded(t, &crowd, g.front, perSecond, stop)
	}
	redis.Kill()
	for _, g := range gates {
		soon(t, "the loss is noticed", func() bool { return g.metric("sluice_fleet_up") == 0 })
	}
	shop.steady(t, "Redis is away", 5, gates[:]...)
	redis.Restart()
	for _, g := range gates {
		soon(t, "Redis is found", func() bool { return g.metric("sluice_fleet_up") == 1 })
		if n := g.metric("sluice_fleet_instances"); n != 2 { // at once: none has forgotten the other
			t.Errorf("%v instances when Redis is found, want 2", n)
		}
	}
	counts(t, 2, gates[:]...)
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

func TestFleet_ReloadJoinsAndDivides(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	listed := func() int64 { return redis.Client.ZCard(t.Context(), "sluice:shop:fleet:{shop}:members").Val() }
	g := gate(t, open(t, nil).setting(), `stock.source = "off"`, "stock.redis.addresses = "+quoted(redis.Addr), unlimited,
		"limits.window.size = \"1s\"",
		"limits.window.max = 4", "limits.window.max_per_sku = 0", "limits.window.max_delay = \"0s\"",
		"limits.window.scope = \"instance\"", "fleet.instances = 0", fleetRoute)
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	change := func(scope, instances string) {
		r := strings.NewReplacer(`scope = "instance"`, "scope = "+scope, "instances = 0", "instances = "+instances)
		g.rewrite(r.Replace(string(text)), true)
	}
	if n := listed(); n != 0 {
		t.Errorf("%d on the list, want none", n)
	}
	change(`"fleet"`, "0")
	soon(t, "it has joined", func() bool { return listed() == 1 && g.metric("sluice_fleet_instances") == 1 })
	change(`"fleet"`, "4") // by configuration
	soon(t, "a window has one place", func() bool {
		before := g.metric("sluice_rejected_requests_total", `reason="window"`)
		admitted := 0
		for range 6 {
			if g.ask("GET", "/").is(200, "") {
				admitted++
			}
		}
		return admitted == 1 && g.metric("sluice_rejected_requests_total", `reason="window"`) == before+5
	})
	change(`"instance"`, "4")
	soon(t, "a window has four places", func() bool {
		admitted := 0
		for range 6 {
			if g.ask("GET", "/").is(200, "") {
				admitted++
			}
		}
		return admitted == 4
	})
}

// One that died is still listed for a while. It does not keep another from beginning.
func TestFleet_DeadInstancesDelayNoStart(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	now := redis.Client.Time(t.Context()).Val().UnixMilli()
	if err := redis.Client.Do(t.Context(), "ZADD", "sluice:shop:fleet", now, "killed").Err(); err != nil {
		t.Fatal(err)
	}
	g := gate(t, open(t, nil).setting(), `stock.source = "off"`, "stock.redis.addresses = "+quoted(redis.Addr),
		"limits.window.scope = \"fleet\"", fleetRoute)
	if _, text := g.peek("/readyz?verbose"); !strings.Contains(text, "fleet: counted") {
		t.Errorf("/readyz says:\n%s", text)
	}
	if n := g.metric("sluice_fleet_instances"); n != 1 && n != 2 {
		t.Errorf("%v instances, want 2, or 1 when the dead one is forgotten", n)
	}
	g.ask("GET", "/").must(t, 200, "")
}
