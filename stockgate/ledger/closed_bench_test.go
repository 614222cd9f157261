package ledger

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// BenchmarkClosedOfMany prints what a refusal costs while the SKUs grow of which one is asked for at random: of very many of
// them nothing is in any cache. Of those that were won each has had one unit.
func BenchmarkClosedOfMany(b *testing.B) {
	for _, n := range []int{1, 10_000, 100_000} {
		for _, units := range []int64{0, 1} {
			b.Run(fmt.Sprintf("%d/%s", n, map[int64]string{0: "empty", 1: "won"}[units]), func(b *testing.B) {
				d := emptied(b, n, units)
				var sku, user []byte
				now := d.o.Now()
				b.ReportAllocs()
				for b.Loop() {
					i := rand.IntN(n)
					sku = strconv.AppendInt(append(sku[:0], "gone-"...), int64(i), 10)
					user = strconv.AppendInt(append(user[:0], "user-"...), int64(i)^now, 10)
					now += 33_000
					if out, _ := d.Closed(now, Order{SKU: sku, User: user, Quantity: 1}); out.Code != SoldOut {
						b.Fatal(out)
					}
				}
			})
		}
	}
}

// emptied returns a desk that does by itself nothing, and knows of each of n SKUs that it is sold out and who has won.
func emptied(b *testing.B, n int, units int64) *Desk {
	s, o := newShelf(), deskOptions()
	o.SoldOutMemory, o.MaxWinners = 24*time.Hour, n
	d := opened(b, o, s, nil)
	d.rest()
	d.watch.Wait()
	for i := range n {
		s.put(fmt.Sprint("gone-", i), units, 0)
		d.Expect(fmt.Sprint("gone-", i))
	}
	for i := range n {
		order := Order{SKU: fmt.Append(nil, "gone-", i), User: []byte("winner"), Quantity: 1}
		d.Reserve(d.o.Now(), order)
		for d.lines.find(order.SKU).reading.Load() {
			time.Sleep(10 * time.Microsecond)
		}
	}
	return d
}
