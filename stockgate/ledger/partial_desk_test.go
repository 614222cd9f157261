package ledger

import "testing"

// While units are free, but fewer than an order wants, nobody has read who has won.
func TestWinnerOfSeveralUnitsIsNeverSoldOutWhileFewerAreFree(t *testing.T) {
	for _, looks := range []string{"with looks left", "without"} {
		t.Run(looks, func(t *testing.T) {
			o := deskOptions()
			o.PerUser = 2
			here, there, _ := twoDesks(t, 4, o)
			two := Order{SKU: []byte(sku), User: []byte("ann"), Quantity: 2}
			won := here.Reserve(here.o.Now(), two)
			wants(t, "two units", won, Held)
			wants(t, "another, elsewhere", there.buy("bob", ""), Held) // leaves one
			if looks == "without" {
				there.spend()
				wants(t, "again, elsewhere", there.Reserve(there.o.Now(), two), Overloaded)
				return
			}
			again := there.Reserve(there.o.Now(), two)
			wants(t, "again, elsewhere", again, ReplayHeld)
			want(t, "serial", again.Serial, won.Serial)
			two.User = []byte("zoe")
			wants(t, "who has won nothing", there.Reserve(there.o.Now(), two), SoldOut)
			two.User = nil
			wants(t, "nobody", there.Reserve(there.o.Now(), two), SoldOut)
		})
	}
}
