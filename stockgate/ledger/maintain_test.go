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

	"sluice/internal/storetest"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/ledger/redisstore"
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
		s := &laggard{fakeStore: fakeStoreOf(ledgertest.SKU, 1)}
		o := testOptions()
		o.Log = slog.New(slog.NewTextHandler(&said, nil))
		d := opened(t, o, s, nil)
		d.Track(ledgertest.SKU)
		for _, c := range []struct {
			err    error
			behind int64
			lines  int
		}{{nil, 0, 0}, {protocol.ErrBacklog, 1, 1}, {ledgertest.ErrNetwork, 1, 1}, {nil, 0, 2}, {ledgertest.ErrNetwork, 0,
			2}} {
			s.be(c.err)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			ledgertest.Want(t, "behind", ledgertest.Value(d.backlogged), c.behind)
			ledgertest.Want(t, "lines of the log", strings.Count(said.String(), "\n"), c.lines)
		}
	})
}

// idle returns a reserver that does by itself nothing, and whose sweeps the test makes.
func idle(t testing.TB, r Store, skus []string) *Reserver {
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
	r := storetest.Ledger(t)
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), "1001", 1_000, 0))
	hold := func(t *testing.T, r *redisstore.Store, sku, serial string, deadline int64) {
		codes := make([]protocol.Code, 1)
		ledgertest.Must[protocol.StockVersion](t)(r.Reserve(t.Context(), sku, 0, 1, deadline,
			[]protocol.Item{{Serial: serial, Quantity: 1}}, codes))
	}
	for i := range 200 {
		hold(t, r, "1001", fmt.Sprint("late ", i), 10)
	}
	ledgertest.Want(t, "more", r.SweepAll(t.Context(), []string{"1001"}, 5, 6)[0].More, false)
	d := idle(t, r, []string{"1001"})
	d.upkeep.sweepDue(t.Context())
	l := d.skus.Find([]byte("1001"))
	ledgertest.Want(t, "unresolved", len(l.unresolved), 200)
	ledgertest.Want(t, "more", r.SweepAll(t.Context(), []string{"1001"}, 20, 30)[0].More, false)
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
