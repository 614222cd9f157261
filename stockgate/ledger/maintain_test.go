package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice/internal/testkit"
)

// laggard is a store whose consumers are behind when it is told so.
type laggard struct {
	*fakeStore
	mu  sync.Mutex
	err error
}

func (l *laggard) Backlog(_ context.Context, skus []string) []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Repeat([]error{l.err}, len(skus))
}

func (l *laggard) be(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func TestMaintenance_LogsABacklogOnceAndItsEndOnce(t *testing.T) {
	at(t, func(t *testing.T) {
		var said strings.Builder
		s := &laggard{fakeStore: fakeStoreOf(testSKU, 1)}
		o := testOptions()
		o.Log = slog.New(slog.NewTextHandler(&said, nil))
		d := opened(t, o, s, nil)
		d.Track(testSKU)
		for _, c := range []struct {
			err    error
			behind int64
			lines  int
		}{{nil, 0, 0}, {ErrBacklog, 1, 1}, {errNetwork, 1, 1}, {nil, 0, 2}, {errNetwork, 0,
			2}} {
			s.be(c.err)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			testkit.Want(t, "behind", valueOf(d.backlogged), c.behind)
			testkit.Want(t, "lines of the log", strings.Count(said.String(), "\n"), c.lines)
		}
	})
}

// idle returns a reserver that does by itself nothing, and whose sweeps the test makes.
func idle(t testing.TB, r Calls, skus []string) *Reserver {
	t.Helper()
	d := opened(t, testOptions(), r, nil)
	d.stop()
	d.background.Wait()
	for _, sku := range skus {
		d.Track(sku)
	}
	return d
}

func TestMaintenance_SweepsAllOfASKUThatHasMoreDue(t *testing.T) {
	r := storeInProcess(t)
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 1_000, 0))
	hold := func(t *testing.T, r *Store, sku, serial string, deadline int64) {
		codes := make([]Code, 1)
		testkit.Must[StockVersion](t)(r.Reserve(t.Context(), sku, 0, 1, deadline,
			[]Item{{Serial: serial, Quantity: 1}}, codes))
	}
	for i := range 200 {
		hold(t, r, "1001", fmt.Sprint("late ", i), 10)
	}
	testkit.Want(t, "more", r.SweepAll(t.Context(), []string{"1001"}, 5, 6)[0].More, false)
	d := idle(t, r, []string{"1001"})
	d.upkeep.sweepDue(t.Context())
	l := d.skus.Find([]byte("1001"))
	testkit.Want(t, "unresolved", len(l.unresolved), 200)
	testkit.Want(t, "more", r.SweepAll(t.Context(), []string{"1001"}, 20, 30)[0].More, false)
}

// After a fail-over no instance waits for one whose mark is a minute older than the others': however many SKUs there
// are, an instance that runs must have called each of them within that time.
func TestMaintain_EachOfManySKUsIsSweptWhileItsMarkIsFresh(t *testing.T) {
	const skus, fresh = 10_000, 60 * time.Second
	at(t, func(t *testing.T) {
		s := newFakeStore()
		for i := range skus {
			s.put(fmt.Sprint(i), 1, 0)
		}
		d := opened(t, testOptions(), s, nil)
		for i := range skus {
			d.Track(fmt.Sprint(i))
		}
		for range 3 {
			before := s.count("sweep")
			time.Sleep(fresh / 2)
			if n := s.count("sweep") - before; n < skus {
				t.Fatalf("%d sweeps of %d SKUs in %v", n, skus, fresh/2)
			}
		}
	})
}

// Another instance finds that the ledger has lost something, and no order comes: this instance knows from its sweeps.
func TestMaintain_LedgerThatIsClosedElsewhereIsKnownWithoutAnOrder(t *testing.T) {
	server, r := onRedis(t)
	idle := testkit.Must[*Store](t)(NewStore(optionsFor(server, 4)))
	t.Cleanup(func() { _ = idle.Close() })
	d := opened(t, testOptions(), idle, nil)
	d.Track("1001")
	state := func(want State) {
		t.Helper()
		testkit.Eventually(t, "it is known as "+string(want), func() bool {
			s := d.skus.Find([]byte("1001")).stock.Load()
			return s != nil && s.State == want
		})
	}
	state(On)
	server.Client.HIncrBy(t.Context(), "sluice:shop:{1001}:s", "ver", -1)
	codes := make([]Code, 1)
	_, err := r.Reserve(t.Context(), "1001", 0, 1, time.Now().Add(time.Minute).UnixMilli(), []Item{{Serial: "c", Quantity: 1}},
		codes)
	if s, ok, readErr := r.ReadStock(t.Context(), "1001"); readErr != nil || !ok || s.State != Frozen {
		t.Fatalf("%v, %v; %+v, %v, %v", codes, err, s, ok, readErr)
	}
	state(Frozen)
}
