package redisconn

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// However often the master changes, connections and goroutines are as many as one session needs.
func TestFailovers_SessionsOfManyFailOversLeaveNothingBehind(t *testing.T) {
	testkit.Nightly(t, "it counts goroutines and connections over a thousand fail-overs")
	const failOvers = 1000
	servers := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	var which, asked atomic.Int64
	l := openMany(t, servers[0], 1, 4)
	o := l.options
	n := newServer(o, "", func(context.Context) (string, error) { return servers[which.Load()%2].Addr, nil })
	defer n.close()
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if n.call(t.Context(), Route{}, call{func(ctx context.Context, c Commands,
					_ string) error {
					return c.Ping(ctx).Err()
				}, always}) == nil {
					asked.Add(1)
				}
			}
		})
	}
	most := 0
	for range failOvers {
		before := asked.Load()
		which.Add(1)
		n.replace(n.session.Load())
		testkit.Eventually(t, "the next one is asked", func() bool { return asked.Load() > before })
		most = max(most, runtime.NumGoroutine())
	}
	close(stop)
	all.Wait()
	if most > 100 {
		t.Errorf("there were %d goroutines at a time", most)
	}
	testkit.Eventually(t, "few connections", func() bool {
		return servers[0].Number("clients", "connected_clients:")+servers[1].Number("clients",
			"connected_clients:") <= int64(2*o.PoolSize+4)
	})
}
