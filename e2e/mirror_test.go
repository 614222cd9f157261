package e2e

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/internal/redistest"
)

// A shop that goes on writing into the key that Sluice keeps for its pages takes nothing away: the ledger alone
// sells. Its writes are lost with the next one of the mirror, and the key is right once the last order is in.
func TestMirror_ShopThatWritesIntoItSellsNothingMoreAndNothingTwice(t *testing.T) {
	t.Parallel()
	const units, shoppers, atOnce = 200, 600, 4
	r, shop := redistest.Start(t), book(t, nil)
	mirror := "stock.reserve.write_back = true"
	one := reserves(t, r, units, shop.setting(), mirror)
	two := reserves(t, r, 0, shop.setting(), mirror)
	left := func() string { return r.Client.Get(context.Background(), key).Val() }
	soon(t, "the pages see the stock", func() bool { return left() == strconv.Itoa(units) })

	done := make(chan struct{})
	var writes sync.WaitGroup
	var wrote atomic.Int64
	for range 4 {
		writes.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				switch wrote.Add(1) % 3 { // as a shop that still deducts, one that fills up, and one that tidies
				case 0:
					r.Client.Decr(context.Background(), key)
				case 1:
					r.Client.Set(context.Background(), key, 1_000_000, 0)
				case 2:
					r.Client.Del(context.Background(), key)
				}
			}
		})
	}
	var bought, soldOut atomic.Int64
	var buyers sync.WaitGroup
	for first := range atOnce {
		buyers.Go(func() {
			b := &buyer{}
			defer b.leave()
			for u := first; u < shoppers; u += atOnce {
				b.user = strconv.Itoa(u)
				switch status, reason := b.buy([]string{one.front, two.front}[first%2]); {
				case status == 200:
					bought.Add(1)
				case reason == "sold_out", reason == "undecided":
					soldOut.Add(1)
				default:
					t.Errorf("shopper %d heard %d %s", u, status, reason)
				}
			}
		})
	}
	buyers.Wait()
	soon(t, "all is settled", func() bool { return ledgerOf(t, r, "1001").held == 0 })
	close(done)
	writes.Wait()
	if bought.Load() != units || shop.booked() != units || ledgerOf(t, r, "1001") != (account{units, 0, units}) {
		t.Errorf("%d bought, %d heard sold out, the shop has %d orders, the ledger %+v", bought.Load(), soldOut.Load(),
			shop.booked(), ledgerOf(t, r, "1001"))
	}
	shop.audit(t)

	// Only the mirror writes now: the next change of the stock puts the key right, whatever stands there.
	ok(t, "stock", "add", "--config", one.file, "1001", "7")
	soon(t, "the pages see what is free", func() bool { return left() == "7" })
	t.Logf("the shop wrote %d times", wrote.Load())
}
