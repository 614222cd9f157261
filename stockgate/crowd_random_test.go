package stockgate

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/layout"
)

// Shoppers who come in bursts, with pauses between them that are as long as readings last, meet a shop that sells by
// DECR and sells again, and a Redis that is away for a while: whatever has happened, a SKU opens and closes again by
// what Redis says.
func TestCrowdRandom_BurstsAndPausesLeaveNoSKUClosedThatHasUnits(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := dial(t, server, layout.Options{Type: layout.Counter, Key: "stock:$sku"})
	o := options()
	o.Refresh, o.SoldOutMemory, o.Wait, o.PerUnit = 2*time.Millisecond, 100*time.Millisecond, 5*time.Second, 2
	g := open(t, o, s)
	const many = 40
	for i := range many {
		testkit.Check(t, s.Set(t.Context(), string(name(i)), 3))
	}
	var all sync.WaitGroup
	var sold, vain, rejected atomic.Int64
	for range 8 {
		all.Go(func() {
			for range 20 {
				for range 20 {
					sku := name(rand.IntN(many))
					g.Closed(o.Now(), sku)
					if g.Enter(o.Now(), sku, nil) != reject.Admitted {
						rejected.Add(1)
						continue
					}
					left, err := s.Add(t.Context(), string(sku), -1)
					if err != nil {
						t.Error(err)
					} else if left < 0 {
						vain.Add(1)
					} else {
						sold.Add(1)
					}
					if left < 0 || rand.IntN(4) == 0 {
						if _, err := s.Add(t.Context(), string(sku), 1); err != nil {
							t.Error(err)
						}
					}
					g.Leave(sku)
				}
				time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond) // pauses are as long as readings last
			}
		})
	}
	all.Wait()
	t.Logf("%d sold, %d in vain, %d rejected", sold.Load(), vain.Load(), rejected.Load())
	for i := range many {
		sku := name(i)
		if e := g.table.Find(sku); e != nil && e.inFlight.Load() != 0 {
			t.Errorf("%s: %d in flight", sku, e.inFlight.Load())
		}
		testkit.Check(t, s.Set(t.Context(), string(sku), 0))
	}
	for i := range many {
		testkit.Eventually(t, "closed",
			func() bool { return left(g, name(i), g.Enter(o.Now(), name(i), nil)) == reject.SoldOut })
		testkit.Check(t, s.Set(t.Context(), string(name(i)), 1))
	}
	for i := range many {
		testkit.Eventually(t, "open",
			func() bool { return left(g, name(i), g.Enter(o.Now(), name(i), nil)) == reject.Admitted })
	}
	for range 2 {
		server.Kill()
		testkit.Eventually(t, "lost", func() bool { return g.Away(o.Now()) > 0 })
		server.Restart()
		for i := range many {
			testkit.Check(t, server.Client.Set(t.Context(), "stock:"+string(name(i)), i%2, 0).Err())
		}
		for i := range many {
			want := []reject.Reason{reject.SoldOut, reject.Admitted}[i%2]
			testkit.Eventually(t, "known again", func() bool {
				return left(g, name(i), g.Enter(o.Now(), name(i), nil)) == want
			})
		}
	}
	testkit.Eventually(t, "no SKU without requests is read", func() bool { return g.table.Len() == 0 })
	g.Close()
	if len(g.poller.active) != 0 || len(g.poller.queue) != 0 {
		t.Errorf("%d active, %d in the queue", len(g.poller.active), len(g.poller.queue))
	}
}
