package script

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/redistest"
	"sluice/proxy/reject"
)

// 500 orders at once for 10 units: a half comes to two instances, the other half to the shop's own backend, which runs
// the same script on the same keys. Exactly 10 are sold.
func TestPresets_ShopAndSluiceSellOneStock(t *testing.T) {
	for _, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			r := redistest.Start(t)
			s.stock(t, r.Client, 10)
			instances := []*Reserver{reserver(t, r.Addr, s.def), reserver(t, r.Addr, s.def)}
			var here, shop atomic.Int64
			buy := func(i int) {
				user := fmt.Sprint(i)
				if i%2 == 0 {
					if s.buy(t, r.Client, user) {
						shop.Add(1)
					}
					return
				}
				switch reason, _ := take(instances[i/2%2], s.sku, user, "", 1); reason {
				case reject.Admitted:
					here.Add(1)
				case reject.SoldOut, reject.Concurrency: // the latter while the shop holds its lock
				default:
					t.Errorf("order %d: %s", i, reason)
				}
			}
			var all sync.WaitGroup
			for i := range 500 {
				all.Go(func() { buy(i) })
			}
			all.Wait()
			if n := here.Load() + shop.Load(); n != 10 || s.left(t, r.Client) != 0 {
				t.Errorf("%d sold by Sluice, %d by the shop, %d left", here.Load(), shop.Load(), s.left(t, r.Client))
			}
			for i, instance := range instances {
				if reason, _ := take(instance, s.sku, fmt.Sprint("late-", i), "", 1); reason != reject.SoldOut {
					t.Errorf("afterwards: %s", reason)
				}
			}
		})
	}
}
