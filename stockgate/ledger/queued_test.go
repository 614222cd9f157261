package ledger

// Time in this file is virtual (testing/synctest).

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// deafStore is a store whose replies to Reserve are lost for a while.
type deafStore struct {
	*Store
	deaf atomic.Bool
}

func (s *deafStore) Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []Item,
	codes []Code) (StockVersion, error) {
	h, err := s.Store.Reserve(ctx, sku, epoch, now, deadline, items, codes)
	if s.deaf.Load() {
		return StockVersion{}, errNetwork
	}
	return h, err
}

// The client of an order hears that nobody knows whether it is placed. What waits then is given back, and what was
// handed out to the upstream is not.
func TestUnsureOrderOfAQueue_IsReleasedUnlessItWasHandedOut(t *testing.T) {
	at(t, func(t *testing.T) {
		s := &deafStore{Store: storeInProcess(t)}
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), testSKU, 5, 0))
		d := opened(t, testOptions(), s, nil)
		buy := func(key string) Outcome {
			return d.Reserve(d.o.Now(), Order{SKU: []byte(testSKU), Key: []byte(key), Quantity: 1,
				Request: NewRequest(MaxNumber, "request of "+key)})
		}
		s.deaf.Store(true)
		wants(t, "handed out", buy("sent"), Unsure)
		taken, err := s.HandOut(t.Context(), testSKU, HandOutCall{Now: time.Now().UnixMilli(), Orders: 9,
			Limit:   9,
			Timeout: 1000, Slowest: 1000, Ask: 1, AskFor: 1})
		testkit.Check(t, err)
		if len(taken.Orders) != 1 || taken.Orders[0].Request != "request of sent" {
			t.Fatalf("taken: %+v", taken.Orders)
		}
		wants(t, "waiting", buy("waiting"), Unsure)
		s.deaf.Store(false)
		time.Sleep(time.Minute)
		places := testkit.Must[[]Position](t)(s.Positions(t.Context(), testSKU, []string{"sent",
			"waiting"}))
		testkit.Want(t, "the one that was handed out", places[0].Where, Delivering)
		testkit.Want(t, "the one that waited", places[1].Status, StatusReleased)
		wants(t, "an order that nobody doubts", buy("third"), Held)
	})
}

// The header of a request may be so long that it cannot wait. Orders that share a call with it are placed.
func TestOrderThatIsTooLongToWait_IsRejectedAlone(t *testing.T) {
	at(t, func(t *testing.T) {
		s := storeInProcess(t)
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), testSKU, 5, 0))
		d := opened(t, testOptions(), s, nil)
		var told sync.WaitGroup
		for key, want := range map[string]Code{"long": Invalid, "b": Held, "c": Held} {
			request := strings.Repeat("x", 1000)
			if key == "long" {
				request = strings.Repeat("x", MaxRequest)
			}
			told.Go(func() {
				wants(t, key, d.Reserve(d.o.Now(), Order{SKU: []byte(testSKU), Key: []byte(key), Quantity: 1,
					Request: NewRequest(MaxNumber, request)}), want)
			})
		}
		told.Wait()
	})
}

// heavyStore knows how many bytes of requests its calls have had at most. The first call takes a second.
type heavyStore struct {
	*Store
	calls, most atomic.Int64
}

func (s *heavyStore) Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []Item,
	codes []Code) (StockVersion, error) {
	n := 0
	for _, i := range items {
		n += len(i.Request)
	}
	s.most.Store(max(s.most.Load(), int64(n)))
	if s.calls.Add(1) == 1 {
		time.Sleep(time.Second)
	}
	return s.Store.Reserve(ctx, sku, epoch, now, deadline, items, codes)
}

// A call that is too large takes longer than it may, and then all its orders are unsure.
func TestLongOrders_ShareACallUpToItsSize(t *testing.T) {
	at(t, func(t *testing.T) {
		s, request := &heavyStore{Store: storeInProcess(t)}, strings.Repeat("x", 256<<10)
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), testSKU, 50, 0))
		o := testOptions()
		o.Timeout, o.MaxWait = 5*time.Second, 5*time.Second
		d := opened(t, o, s, nil)
		var told sync.WaitGroup
		for i := range 40 {
			told.Go(func() {
				wants(t, "an order", d.Reserve(d.o.Now(), Order{
					SKU: []byte(testSKU), Key: fmt.Appendf(nil, "k%d", i),
					Quantity: 1, Request: NewRequest(MaxNumber, request)}), Held)
			})
		}
		told.Wait()
		if n := s.most.Load(); n > maxBatchBytes+512<<10 {
			t.Errorf("%d bytes in one call", n)
		}
	})
}

func TestProof_IsOfOneOrderAndOneSecret(t *testing.T) {
	a, b := newDeriver([]byte("sixteen bytes at least")), newDeriver([]byte("another secret of so many bytes"))
	proof := a.Proof("1001", "serial")
	testkit.Want(t, "again", a.Proof("1001", "serial"), proof)
	for what, other := range map[string]string{
		"another order": a.Proof("1001", "serial2"), "another SKU": a.Proof("10", "01serial"),
		"another secret": b.Proof("1001", "serial"), "a derived serial": a.derive([]byte("1001"), []byte("serial"), 0, 0),
	} {
		if other == proof || len(other) != derivedLength {
			t.Errorf("%s: %q", what, other)
		}
	}
}
