package records

import (
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/redisconn"
)

// A shop sells other SKUs each day. Once the last order of a SKU is forgotten, nothing of it is left in Redis. As long
// as one is known, it can be found without its SKU.
func TestStore_ForgetsSKUsWithTheirLastOrder(t *testing.T) {
	r := redistest.Start(t)
	link, err := redisconn.New(redisconn.Options{Addresses: []string{r.Addr}, PoolSize: 2, ConnectTimeout: 5 * time.Second,
		Timeout: 5 * time.Second, BreakerErrors: 20, BreakerPause: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	s := New(link, "")
	finish := func(sku string, op protocol.Op, until int64, serials ...string) {
		for _, serial := range serials {
			done := make([]protocol.Done, 1)
			_, err := s.Finish(t.Context(), sku, 1, until, op, []protocol.Item{{Serial: serial}}, done)
			if err != nil || done[0] != protocol.Changed {
				t.Fatalf("%s of %q: %v, %v", op, serial, done, err)
			}
		}
	}
	known := func(now int64) []string {
		for range 3 { // what is owed is forgotten later
			for _, swept := range s.SweepAll(t.Context(), []string{"1"}, now, now) {
				if swept.Err != nil {
					t.Fatal(swept.Err)
				}
			}
		}
		skus, err := s.SKUs(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		return skus
	}
	for _, sku := range []string{"1", "2", "3"} {
		orders := []Order{{Serial: "a", Quantity: 1}, {Serial: "b", Quantity: 2}}
		if _, err := s.Write(t.Context(), sku, 1000, orders); err != nil {
			t.Fatal(err)
		}
	}
	finish("1", protocol.Release, 2000, "a", "b", "before its order")
	finish("2", protocol.Release, 2000, "a")
	finish("2", protocol.Release, 9000, "b")
	finish("3", protocol.Confirm, 2000, "a", "b")
	owed, err := s.Claim(t.Context(), 10)
	for _, o := range owed {
		if err := s.Done(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if len(owed) != 4 || err != nil {
		t.Fatalf("%d are owed, %v", len(owed), err)
	}
	if got := fmt.Sprint(known(3000)); got != "[2 3]" {
		t.Errorf("known are %s: one order of 2 is still remembered, and those of 3 are sold", got)
	}
	if got := fmt.Sprint(known(1 + keepConfirmed.Milliseconds() + time.Hour.Milliseconds())); got != "[]" {
		t.Errorf("known are %s", got)
	}
	if keys, err := r.Client.Keys(t.Context(), "*").Result(); len(keys) > 0 || err != nil {
		t.Errorf("left are %q, %v", keys, err)
	}
}
