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
	testkit.Eventually(t, "calls wait", func() bool { return waitingFor(only) == skus-maxTrips })
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

// waitingFor counts the calls that wait for a round trip.
func waitingFor(t *roundTrips) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, calls := range t.waiting {
		n += len(calls)
	}
	return n
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
			trips.waiting[reserving] = append(trips.waiting[reserving], &sharedCall{scriptCall: call})
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

// A client does not wait until all settlements are told that were there before its order. Settlements do not wait for a
// crowd of orders either.
func TestRoundTrips_LateCallOfTheOtherKindGoesWithTheNextOne(t *testing.T) {
	for late, orders := range map[string]bool{"reservation": true, "settlement": false} {
		t.Run(late, func(t *testing.T) { lateCall(t, orders) })
	}
}

// lateCall has a reservation wait behind a crowd of settlements, or the other way round, and lets one round trip go.
func lateCall(t *testing.T, reserves bool) {
	const crowd = 4 * callsPerTrip
	_, r := onRedis(t)
	call := func(i int, reserves bool) (err error) {
		sku, items := fmt.Sprint("many-", i), []Item{{Serial: "s", User: "ann", Quantity: 1}}
		if reserves {
			_, err = r.Reserve(t.Context(), sku, 0, 1, 1_000_000, items, []Code{Unsure})
		} else {
			_, err = r.Finish(t.Context(), sku, 1, 1_000_000, Release, items, []Done{0})
		}
		return err
	}
	for i := range crowd + 1 {
		testkit.Must[Stock](t)(r.SetTotal(t.Context(), fmt.Sprint("many-", i), 5, 0))
	}
	testkit.Check(t, errors.Join(call(0, true), call(0, false))) // Redis knows the scripts: a round trip is one
	only, goesOn, late := r.tripsTo(t.Context(), ""), make(chan struct{}), make(chan error, 1)
	countTrips(t, r).between = func() { <-goesOn }
	only.mu.Lock()
	only.underWay = maxTrips
	only.mu.Unlock()
	var all sync.WaitGroup
	defer all.Wait()
	defer r.nextTrip(only) // the other of the two round trips ends, also where this test has failed
	defer close(goesOn)
	for i := range crowd {
		all.Go(func() { testkit.Check(t, call(i, !reserves)) })
	}
	testkit.Eventually(t, "the crowd waits", func() bool { return waitingFor(only) == crowd })
	go func() { late <- call(crowd, reserves) }()
	testkit.Eventually(t, "the late call waits", func() bool { return waitingFor(only) == crowd+1 })
	r.nextTrip(only)
	goesOn <- struct{}{}
	testkit.Eventually(t, "the late call is answered", func() bool { return len(late) == 1 })
	testkit.Check(t, <-late)
}

// Neither kind of calls has more than half of a round trip while the other one waits, however large its calls are.
func TestRoundTrips_EachKindHasItsHalf(t *testing.T) {
	for _, c := range []struct{ settle, items, reserve, wantSettle, wantReserve int }{
		{40, 1, 40, callsPerTrip / 2, callsPerTrip / 2},
		{40, 1, 3, callsPerTrip - 3, 3}, {3, 1, 40, 3, callsPerTrip - 3},
		{40, MaxItems, 40, 1, callsPerTrip / 2},
	} {
		trips := &roundTrips{underWay: 1}
		for range c.settle {
			w := &sharedCall{scriptCall: &scriptCall{script: "finish", items: make([]Item, c.items)}}
			trips.waiting[settling] = append(trips.waiting[settling], w)
		}
		for range c.reserve {
			w := &sharedCall{scriptCall: &scriptCall{script: reserveScript, items: make([]Item, 1)}}
			trips.waiting[reserving] = append(trips.waiting[reserving], w)
		}
		var got [kindsOfCalls]int
		for _, w := range trips.take() {
			if w.script == reserveScript {
				got[reserving]++
			} else {
				got[settling]++
			}
		}
		testkit.Want(t, fmt.Sprint(c), got, [kindsOfCalls]int{c.wantSettle, c.wantReserve})
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
		waits := only.waiting[reserving]
		return len(waits) == 1 && time.Since(waits[0].since) > time.Millisecond
	})
	r.nextTrip(only)
	testkit.Check(t, <-asked)
	testkit.Want(t, "an order", codes[0], NotOnSale)
}
