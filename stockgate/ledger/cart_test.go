package ledger

import (
	"fmt"
	"sync/atomic"
	"testing"

	"sluice/internal/testkit"
)

// Whether the store, a batch or the cache of orders answers, the first cart has the key.
func TestReserver_KeyIsOneCarts(t *testing.T) {
	leakless(t)
	s := storeInProcess(t)
	testkit.Must[Stock](t)(s.SetTotal(t.Context(), testSKU, 1_000, 0))
	r := opened(t, testOptions(), s, nil)
	for key := range 20 {
		buy := func(cart string) Code {
			o := attempt("u", fmt.Sprint("k", key))
			o.Cart = cart
			return r.Reserve(r.o.Now(), o).Code
		}
		var heard [2]struct{ held, replayed, other, again atomic.Int64 }
		testkit.Storm(64, 64, func(i int) {
			switch h := &heard[i%2]; buy(fmt.Sprint("c", i%2)) {
			case Held:
				h.held.Add(1)
			case ReplayHeld:
				h.replayed.Add(1)
			case OtherOrder:
				h.other.Add(1)
			case Overloaded:
				h.again.Add(1)
			}
		})
		first, second := &heard[0], &heard[1]
		if second.held.Load() > 0 {
			first, second = second, first
		}
		testkit.Want(t, "reserved once", first.held.Load()+second.held.Load(), 1)
		testkit.Want(t, "the same cart", first.replayed.Load()+first.again.Load(), 31)
		testkit.Want(t, "the other cart", second.other.Load(), 32)
	}
}
