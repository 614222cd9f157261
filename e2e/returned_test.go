package e2e

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// Three instances in front of a shop that takes its stock itself, and a crowd that never stops asking. Units that come
// back draw so many requests into the shop, and no crowd; and none of them is left over.
func TestSoldOut_ReturnedUnitsSendNoCrowdToTheShop(t *testing.T) {
	testkit.Nightly(t, "its bound is on what a crowd sends between two readings in real time")
	t.Parallel()
	const instances = 3
	redis := redistest.Start(t)
	var sold atomic.Int64
	takes := sells(redis.Client)
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Millisecond) // an order has begun before its unit is taken
		told := &witness{ResponseWriter: w, code: http.StatusOK}
		if takes(told, r); told.code == http.StatusOK {
			sold.Add(1)
		}
	})
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(redis.Client.Set(t.Context(), key, 0, 0).Err())
	var gates [instances]*running
	for i := range gates {
		gates[i] = gate(t, shop.setting(), redisAt(redis), unlimited, `stock.sold_out_ttl = "200ms"`)
	}
	counts(t, instances, gates[:]...)

	stop := make(chan struct{})
	var all sync.WaitGroup
	defer all.Wait()
	defer close(stop)
	for _, g := range gates {
		for range 4 {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						push(t, g.front, 64)
					}
				}
			})
		}
	}
	for _, g := range gates {
		soon(t, "the crowd hears that it is sold out",
			func() bool { return g.metric("sluice_rejected_requests_total", `reason="sold_out"`) > 100 })
	}
	if n := shop.arrivals.Load(); n != 0 {
		t.Errorf("%d requests at the shop before anything was for sale", n)
	}
	for _, back := range []int64{1, 2, 7, 40} {
		before, soldBefore := shop.arrivals.Load(), sold.Load()
		check(redis.Client.IncrBy(t.Context(), key, back).Err())
		took := soon(t, "what came back is sold", func() bool { return sold.Load()-soldBefore == back })
		time.Sleep(300 * time.Millisecond) // orders that are late come now
		// max_in_flight_per_unit is 2, and the share of each instance is rounded up. That many may be in flight, beside
		// those that are sold: where the orders of one instance are answered first, the next reading admits others there.
		asked, most := shop.arrivals.Load()-before, back+instances*((2*back+instances-1)/instances)
		t.Logf("%d units came back: %d requests at the shop, sold in %v", back, asked, took)
		if asked > most {
			t.Errorf("%d units that came back drew %d requests into the shop, more than %d", back, asked, most)
		}
	}
}

// witness remembers what was answered.
type witness struct {
	http.ResponseWriter
	code int
}

func (s *witness) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}
