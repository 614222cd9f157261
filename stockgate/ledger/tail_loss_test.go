package ledger

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// till is a shop that remembers the orders it was sent, and whose every seventh answer is lost.
type till struct {
	mu     sync.Mutex
	orders map[string]bool
}

// sell is an order that was forwarded. It reports whether its answer came back.
func (s *till) sell(serial string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders[serial] = true
	return len(s.orders)%7 > 0
}

func (s *till) Ask(_ context.Context, _, serial string) (OrderStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orders[serial] {
		return OrderExists, nil
	}
	return OrderNotFound, nil
}

func (s *till) has() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.orders)
}

// buyAll buys at a reserver, one unit an order, n times.
func buyAll(t *testing.T, d *Reserver, shop *till, name string, n int) {
	t.Helper()
	var buyers sync.WaitGroup
	for b := range 4 {
		buyers.Go(func() {
			for i := range n / 4 {
				serial := fmt.Sprint(name, "-", b, "-", i)
				out := d.Reserve(
					d.o.Now(),
					Order{SKU: []byte("1001"), Key: []byte(serial), User: []byte(serial), Quantity: 1},
				)
				switch {
				case out.Code != Held:
				case shop.sell(serial):
					d.Settle("1001", Item{Serial: serial}, Confirm)
				default:
					d.Unknown("1001", serial)
				}
			}
		})
	}
	buyers.Wait()
}

// The replica's link is cut first, then orders are sold, then the master dies: what the replica never heard of is told
// by the instances, and the ledger balances with the shop to the unit. The old master comes back and sells nothing.
func TestTailLoss_FailOverThatLosesTheTailBalancesWithTheShop(t *testing.T) {
	p, shop := newPair(t), &till{orders: make(map[string]bool)}
	x := exchangeTo(t, p.master)
	log := &testkit.Log{}
	var desks []*Reserver
	for range 2 {
		o := Options{
			Secret:        NewSecret(),
			Hold:          time.Hour,
			OnNotFound:    "release_after_deadline",
			Timeout:       5 * time.Second,
			MaxWait:       5 * time.Second,
			SoldOutMemory: 10 * time.Millisecond,
		}
		o.Log = logTo(log)
		d := opened(t, o, p.through(x), shop)
		t.Cleanup(func() { d.Close(context.Background()) })
		desks = append(desks, d)
	}
	first := desks[0].store.(*Store)
	testkit.Must[Stock](t)(first.SetTotal(t.Context(), "1001", 600, 0))
	sell := func(name string, n int) {
		var both sync.WaitGroup
		for i, d := range desks {
			both.Go(func() { buyAll(t, d, shop, fmt.Sprint(name, i), n) })
		}
		both.Wait()
	}
	sell("before", 60)
	p.cut()
	sell("tail", 80)
	p.master.Pause()
	x.turn(p.replica.Addr)
	testkit.Eventually(t, "the SKU is open again", func() bool {
		s, ok, err := first.ReadStock(context.Background(), "1001")
		buyAll(t, desks[0], shop, "meanwhile", 4)
		return err == nil && ok && s.State == On && s.Epoch > 0 && log.Count("ledger is recovered") > 0
	})
	sell("after", 400)
	testkit.Eventually(t, "the ledger balances", func() bool {
		s, _, err := first.ReadStock(context.Background(), "1001")
		return err == nil && s.Held == 0 && s.Sold == int64(len(shop.has()))
	})
	books := map[string]bool{}
	testkit.Check(t, first.Records(t.Context(), "1001", func(r Record) bool {
		books[r.Serial] = r.Status == StatusSold
		return true
	}))
	testkit.Want(t, "orders", fmt.Sprint(books), fmt.Sprint(shop.has()))
	testkit.Want(t, "sold", len(books), 600)

	p.master.Resume()
	x.turn(p.master.Addr)
	before := len(shop.has())
	for i := range 3 {
		buyAll(t, desks[1], shop, fmt.Sprint("old", i), 20)
	}
	testkit.Want(t, "sold by the old master", len(shop.has())-before, 0)
}
