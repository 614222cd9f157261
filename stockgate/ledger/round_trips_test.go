package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// crowded reserves a unit of each of so many SKUs at once, while no round trip comes to its end before all of them have
// been asked for. It returns the errors, and how many round trips there were. meanwhile runs before they go on.
func crowded(t *testing.T, r *Store, skus int, ctx context.Context, meanwhile func()) (errs []error, made int64) {
	t.Helper()
	for i := range skus {
		testkit.Must[Stock](t)(r.SetTotal(t.Context(), fmt.Sprint("many-", i), 5, 0))
	}
	n, hold := countTrips(t, r), make(chan struct{})
	n.between = func() { <-hold }
	errs = make([]error, skus)
	var all sync.WaitGroup
	for i := range skus {
		all.Go(func() {
			codes := []Code{Unsure}
			items := []Item{{Serial: fmt.Sprint("s", i), User: "ann", Quantity: 1}}
			_, errs[i] = r.Reserve(ctx, fmt.Sprint("many-", i), 0, 1, 1_000_000, items, codes)
			if errs[i] == nil && codes[0] != Held {
				t.Errorf("many-%d: %v", i, codes[0])
			}
		})
	}
	only := r.tripsTo(ctx, "")
	testkit.Eventually(t, "calls wait", func() bool {
		only.mu.Lock()
		defer only.mu.Unlock()
		return len(only.waiting) == skus-maxTrips
	})
	meanwhile()
	close(hold)
	all.Wait()
	testkit.Eventually(t, "no round trip is under way", func() bool {
		only.mu.Lock()
		defer only.mu.Unlock()
		return only.underWay == 0
	})
	return errs, n.Load()
}

// Calls of their own for each SKU would wait for connections, and those that find none fail.
func TestRoundTrips_OrdersOfManySKUsShareThem(t *testing.T) {
	_, r := onRedis(t)
	errs, made := crowded(t, r, 200, t.Context(), func() {})
	testkit.Check(t, errors.Join(errs...))
	testkit.Want(t, "round trips", made, maxTrips+7) // 198 in pieces of 32
}

// A call whose time ends before its turn is not sent.
func TestRoundTrips_CallThatCameTooLateIsNotSent(t *testing.T) {
	_, r := onRedis(t)
	ctx, cancel := context.WithCancel(t.Context())
	errs, made := crowded(t, r, 20, ctx, cancel)
	testkit.Want(t, "round trips", made, maxTrips)
	unsent := 0
	for i, err := range errs {
		s, _, _ := r.ReadStock(t.Context(), fmt.Sprint("many-", i))
		if redisconn.Unsent(err) {
			unsent++
			testkit.Want(t, "units free", s.Free, 5)
		}
	}
	if unsent < 20-maxTrips {
		t.Errorf("%d calls were not sent", unsent)
	}
}

// Where no replica has the orders each of them hears so, whichever round trip it was in.
func TestRoundTrips_EachOrderHearsOfReplicas(t *testing.T) {
	server, _ := onRedis(t)
	o := optionsFor(server, 64)
	o.Replicas = 1
	r := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { r.Close() })
	errs, _ := crowded(t, r, 100, t.Context(), func() {})
	for i, err := range errs {
		if !errors.Is(err, ErrFewReplicas) {
			t.Errorf("many-%d: %v", i, err)
		}
	}
}

// The round trips to each master of a cluster are its own: one that hangs holds up the SKUs of no other.
func TestRoundTrips_MasterThatHangsHoldsUpNoOther(t *testing.T) {
	r := onCluster(t, redistest.Cluster(t, 3))
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 5, 0))
	hangs, ours := (*roundTrips)(nil), r.tripsTo(t.Context(), r.keys("1001")[0])
	for i := 0; hangs == nil || hangs == ours; i++ {
		hangs = r.tripsTo(t.Context(), r.keys(fmt.Sprint("other-", i))[0])
	}
	hangs.underWay = maxTrips
	testkit.Want(t, "an order", takeUnit(t, r, "s", "ann"), Held)
}

// A round trip has so much work at most that Redis answers all of it in time.
func TestRoundTrips_WorkOfEachIsBounded(t *testing.T) {
	many := func(n, items, size int) *roundTrips {
		trips := &roundTrips{underWay: 1}
		for range n {
			call := &scriptCall{items: make([]Item, items)}
			call.items[0].Request = strings.Repeat("x", size)
			trips.waiting = append(trips.waiting, &sharedCall{scriptCall: call})
		}
		return trips
	}
	for _, c := range []struct{ n, items, size, first, rest int }{
		{40, 1, 0, callsPerTrip, 8}, {40, 64, 0, 4, 4}, {5, 1, 1 << 20, 2, 2}, {1, 1, 4 << 20, 1, 0},
	} {
		trips := many(c.n, c.items, c.size)
		testkit.Want(t, fmt.Sprint(c, " at first"), len(trips.take()), c.first)
		testkit.Want(t, fmt.Sprint(c, " then"), len(trips.take()), c.rest)
	}
}

// A sale may end while an order waits for its round trip.
func TestRoundTrips_OrderThatWaitedBuysByTheTimeOfItsRoundTrip(t *testing.T) {
	_, r := onRedis(t)
	const closes = 5_000
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), testSKU, 5, 0))
	testkit.Must[Stock](t)(r.SetSchedule(t.Context(), testSKU, 1_000, closes))
	only, codes, asked := r.tripsTo(t.Context(), ""), []Code{Unsure}, make(chan error, 1)
	only.underWay = maxTrips
	go func() {
		items := []Item{{Serial: "s", User: "ann", Quantity: 1}}
		_, err := r.Reserve(t.Context(), testSKU, 0, closes-1, 9_000, items, codes)
		asked <- err
	}()
	testkit.Eventually(t, "it waits, and the sale is over", func() bool {
		only.mu.Lock()
		defer only.mu.Unlock()
		return len(only.waiting) == 1 && time.Since(only.waiting[0].since) > time.Millisecond
	})
	r.nextTrip(only)
	testkit.Check(t, <-asked)
	testkit.Want(t, "an order", codes[0], NotOnSale)
}
