package ledger

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/redistest"
	"sluice/stockgate/link"
)

// looked is what LookAll told of some SKUs, by position.
type looked struct {
	Hint
	ok  bool
	err error
}

// lookAt looks at SKUs at once. Each must be told of exactly once.
func lookAt(t *testing.T, s Store, skus ...string) []looked {
	t.Helper()
	var mu sync.Mutex
	found, times := make([]looked, len(skus)), make([]int, len(skus))
	s.LookAll(t.Context(), skus, func(i int, h Hint, ok bool, err error) {
		mu.Lock()
		defer mu.Unlock()
		found[i] = looked{h, ok, err}
		times[i]++
	})
	want(t, "told", slices.Max(times)+slices.Min(times), 2)
	return found
}

func TestGlanceTellsTheHintOfEach(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		take(t, s, "a", "ann")
		found := lookAt(t, s, "none", "1001", "{")
		if diff := cmp.Diff(found[1].Hint, stockOf1001(t, s).Hint); diff != "" || !found[1].ok || found[1].err != nil {
			t.Errorf("%+v", found[1])
		}
		if found[0] != (looked{}) {
			t.Errorf("no ledger: %+v", found[0])
		}
		want(t, "a SKU that cannot be fails", found[2].err != nil, true)
	})
}

func TestGlancesShareARoundTripAndLeaveTheirMarks(t *testing.T) {
	server := redistest.Start(t)
	maker, r := connect(t, server, texts()), connect(t, server, texts())
	skus := many(t, maker, together)
	check(t, server.Client.HSet(t.Context(), keys(skus[1])[0], "state", "open").Err())
	n := countTrips(t, r)
	for i, f := range lookAt(t, r, skus...) {
		want(t, skus[i]+" fails", f.err != nil, i == 1)
		want(t, skus[i]+" is there", f.ok, i != 1)
		want(t, skus[i]+" is marked", server.Client.HExists(t.Context(), keys(skus[i])[0], "m:"+r.instance).Val(), i != 1)
	}
	want(t, "round trips", n.Load(), 1)
}

func TestGlanceNoticesWhatWasLost(t *testing.T) {
	server, r := onRedis(t)
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 5, 0))
	kept := snapshotOf(t, server, "1001")
	hold(t, r, "1001", "lost", 10)
	kept.restore(t, server)
	want(t, "state", lookAt(t, r, "1001")[0].State, Frozen)
	check(t, server.Client.FlushAll(t.Context()).Err())
	f := lookAt(t, r, "1001")[0]
	want(t, "is known", f.ok, true)
	want(t, "state of what is gone", f.State, Lost)
}

// One master does not answer; of what the others have one hears meanwhile.
func TestGlanceAtOneServerWaitsForNoOther(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	r := onCluster(t, nodes)
	skus := many(t, r, 30)
	hangs, others := nodes.Owner(link.Slot(keys(skus[0])[0])), 0
	for _, sku := range skus {
		if nodes.Owner(link.Slot(keys(sku)[0])) != hangs {
			others++
		}
	}
	hangs.Pause()
	heard, ended := make(chan error, len(skus)), make(chan struct{})
	go func() {
		defer close(ended)
		r.LookAll(t.Context(), skus, func(_ int, _ Hint, _ bool, err error) { heard <- err })
	}()
	for range others {
		check(t, <-heard)
	}
	select {
	case <-ended:
		t.Error("it has not waited for the one that hangs")
	default:
	}
	hangs.Resume()
	<-ended
	want(t, "told of the rest", len(heard), len(skus)-others)
}
