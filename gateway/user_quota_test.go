package gateway

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// Many users are counted in one call, each by itself, and what was reserved before is in it.
func TestQuota_EachIsCountedByItself(t *testing.T) {
	s := storetest.Ledger(t)
	skus := []string{"a", "b"}
	for _, sku := range skus {
		testkit.Must[ledger.Stock](t)(s.SetTotal(t.Context(), sku, 10_000, 0))
	}
	c := &config.Config{Sales: []config.Sale{{SKUs: append(skus, "none"), MaxPerUser: 3, Ends: time.Unix(9, 0)}}}
	c.Stock.Redis.Timeout = time.Minute
	q := newQuotas(c, s)
	testkit.Storm(600, 600, func(i int) {
		user := fmt.Sprint("u", i)
		codes := make([]ledger.Code, 1)
		for k := range 1 + i%4 {
			it := ledger.Item{Serial: fmt.Sprint(user, "-", k), User: user, Quantity: 1}
			_, err := s.Reserve(t.Context(), skus[k%2], 0, 1, 9, []ledger.Item{it}, codes)
			if err != nil || codes[0] != ledger.Held {
				t.Errorf("reserve: %v %v", codes, err)
			}
		}
		bounds := q.of(ledger.Order{SKU: []byte("a"), Quantity: 1}, time.Unix(1, 0))
		has := q.count(bounds, []byte(user), false)
		more := q.count(bounds, []byte(user), true)
		if (has == reject.Duplicate) != (i%4 == 3) || (more == reject.Duplicate) != (i%4 >= 2) {
			t.Errorf("a user with %d units: %v, %v", 1+i%4, has, more)
		}
	})
}

func TestQuota_IsThatOfTheSaleThatIsOnOrNext(t *testing.T) {
	sale := func(name string, limit int, from, to int64, skus ...string) config.Sale {
		return config.Sale{Name: name, SKUs: skus, MaxPerUser: limit, Starts: time.Unix(from, 0), Ends: time.Unix(to, 0)}
	}
	c := &config.Config{Sales: []config.Sale{
		sale("late", 2, 20, 30, "a"), sale("early", 1, 10, 20, "a", "b"), sale("free", 0, 10, 20, "c"),
		sale("free before", 0, 5, 9, "a"),
	}}
	q := newQuotas(c, storetest.Ledger(t))
	order := ledger.Order{SKU: []byte("a"), Quantity: 2, More: []ledger.Line{{SKU: []byte("b"), Quantity: 3},
		{SKU: []byte("c"), Quantity: 4}}}
	for at, want := range map[int64]string{1: "early 3", 8: "early 3", 9: "early 5", 19: "early 5", 20: "late 2", 30: ""} {
		got := ""
		for _, b := range q.of(order, time.Unix(at, 0)) {
			got += fmt.Sprint(b.sale.Name, " ", b.units)
		}
		if got != want {
			t.Errorf("at %d: %q, want %q", at, got, want)
		}
	}
	if newQuotas(&config.Config{Sales: c.Sales[2:]}, nil) != nil {
		t.Error("a sale without a limit counts")
	}
}

func TestQuota_CloseWaitsForTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuotas(&config.Config{Sales: []config.Sale{{MaxPerUser: 1}}}, nil)
		q.sales[0].counted.Call = func(string, []string) ([]userUnits, error) {
			time.Sleep(time.Second) // of virtual time: how long the call takes
			return make([]userUnits, 1), nil
		}
		o, began := &orderLedger{}, time.Now()
		o.now.Store(&ledgerRules{quotas: q})
		go q.count([]saleBound{{q.sales[0], 1}}, []byte("7"), true)
		synctest.Wait() // the call is under way
		if o.endCounts(); time.Since(began) != time.Second {
			t.Errorf("ended after %v", time.Since(began))
		}
	})
}

// A user who has enough, and repeats an order, hears of that order, or that it cannot be looked up; but not that it is
// none.
func TestQuota_OrderThatCannotBeLookedUpIsNoDuplicate(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := testkit.Must[*ledger.Store](t)(ledger.NewStore(ledger.StoreOptions{Name: "shop", Options: redisconn.Options{
		Addresses: []string{server.Addr}, PoolSize: 4, Timeout: 5 * time.Second, ConnectTimeout: 5 * time.Second,
		BreakerErrors: 20, BreakerPause: time.Second}, Events: 1000}))
	t.Cleanup(func() { _ = s.Close() })
	testkit.Must[ledger.Stock](t)(s.SetTotal(t.Context(), "1001", 5, 0))
	d := testkit.Must[*ledger.Reserver](t)(ledger.New(ledger.Options{Secret: ledger.NewSecret(),
		Timeout: 5 * time.Second}, s, nil))
	t.Cleanup(func() { d.Close(context.Background()) })
	var codes [1]ledger.Code
	testkit.Must[ledger.StockVersion](t)(s.Reserve(t.Context(), "1001", 0, 1, 1_000,
		[]ledger.Item{{Serial: "first", User: "ann", Quantity: 1}}, codes[:]))
	testkit.Want(t, "an order", codes[0], ledger.Held)
	hears := func(what, key string, want reject.Reason) {
		t.Helper()
		testkit.Want(t, what, earlierOrder(d, ledger.Order{SKU: []byte("1001"), Key: []byte(key)}), want)
	}
	hears("its repetition", "first", reject.Admitted)
	hears("another one", "second", reject.Duplicate)
	testkit.Must[ledger.Stock](t)(s.SetState(t.Context(), "1001", ledger.Frozen))
	hears("its repetition, while the ledger may lack orders", "first", reject.Admitted)
	hears("another one", "second", reject.StockError)
	server.Kill()
	hears("its repetition without Redis", "first", reject.StockError)
}
