package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// Users join ten times each at four instances: a person costs Redis no memory, and an instance's calls to Redis are
// bounded however many join. SLUICE_JOINS=1000000 is the long form.
func TestRoom_JoinsCostRedisNoMemoryAndFewCalls(t *testing.T) {
	testkit.Nightly(t, "it measures memory, and calls a second")
	joins := 10_000
	if n, err := strconv.Atoi(os.Getenv("SLUICE_JOINS")); err == nil {
		joins = n
	}
	const each, instances = 10, 4
	r := redistest.Start(t)
	gates, _ := roomGatesOn(t, r, instances, time.Now().Add(50*time.Minute), "")
	opened(t, gates)
	load := &joinLoad{t: t, users: joins / each}
	load.run(gates, 0, joins/10) // from here on the estimate of people has its full size
	first, before, began := roomMemory(t, r), scriptCalls(t, r), time.Now()
	load.run(gates, joins/10, joins)
	took := time.Since(began).Seconds()
	calls := float64(scriptCalls(t, r)-before) / took / instances
	last := roomMemory(t, r)
	t.Logf("%d joins of %d users at %d instances: %.0f joins/s, %.0f script calls/s an instance, "+
		"room %d and then %d bytes",
		joins, load.users, instances, float64(joins-joins/10)/took, calls, first, last)
	if calls > 200 {
		t.Errorf("%.0f calls a second of each instance", calls)
	}
	if last > 16<<10 || last > first+12<<10 {
		t.Errorf("the room takes %d bytes, and then %d", first, last)
	}
	// A user joins as often as it may. The count of joins is a sketch: some users share its cells with others.
	later := load.later.Load()
	if n := load.failed.Load(); n > 0 || later > int64(joins)/1000 {
		t.Errorf("%d joins failed, the last one with %v; %d are asked to come later", n, load.status.Load(), later)
	}
	t.Logf("%d joins are asked to come later", later)
	want := int64(joins) - later
	soon(t, "each join has its number", func() bool { d, _ := gates[0].room(t); return d.Issued == want })
	people := gates[0].metric("sluice_room_people", "room", "rush", "state", "people")
	if share := people / float64(load.users); share < 0.95 || share > 1.05 {
		t.Errorf("%.0f people are counted of %d", people, load.users)
	}
}

// joinLoad has users join, each at all gates in turn: three times at one is the most within a minute.
type joinLoad struct {
	t     *testing.T
	users int

	later, failed, status atomic.Int64
}

// run makes the joins from one to another.
func (l *joinLoad) run(gates []*running, from, to int) {
	l.t.Helper()
	const connections = 128 // for each gate
	next := atomic.Int64{}
	next.Store(int64(from))
	clients := make([]*fasthttp.HostClient, len(gates))
	for i, g := range gates {
		clients[i] = &fasthttp.HostClient{Addr: g.front, MaxConns: connections * len(gates), ReadTimeout: long,
			NoDefaultUserAgentHeader: true}
	}
	var all sync.WaitGroup
	for range connections * len(gates) {
		all.Go(func() {
			var req fasthttp.Request
			var resp fasthttp.Response
			for {
				n := int(next.Add(1)) - 1
				if n >= to {
					return
				}
				req.Reset()
				user, time := n%l.users, n/l.users
				at := (user + time) % len(gates)
				req.SetRequestURI("http://" + gates[at].front + "/.sluice/room/rush/join")
				req.Header.SetMethod("POST")
				req.Header.SetCookie("uid", fmt.Sprint("u", user))
				switch err := clients[at].Do(&req, &resp); {
				case err == nil && resp.StatusCode() == 200:
				case err == nil && resp.StatusCode() == 429:
					l.later.Add(1)
				default:
					l.failed.Add(1)
					l.status.Store(int64(resp.StatusCode()))
				}
			}
		})
	}
	all.Wait()
	for _, c := range clients {
		c.CloseIdleConnections()
	}
}

// roomMemory is how many bytes all keys of rooms take in Redis.
func roomMemory(t *testing.T, r *redistest.Server) (bytes int64) {
	t.Helper()
	keys, err := r.Client.Keys(t.Context(), "sluice:shop:room:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		n, err := r.Client.MemoryUsage(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		bytes += n
	}
	return bytes
}

var scripts = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`)

// scriptCalls is how many scripts Redis has run.
func scriptCalls(t *testing.T, r *redistest.Server) int {
	t.Helper()
	text, err := r.Client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	found := scripts.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no scripts in\n%s", text)
	}
	n, _ := strconv.Atoi(found[1])
	return n
}
