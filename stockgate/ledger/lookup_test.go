package ledger

import (
	"testing"
)

// A crowd of users leaves room in each call for those who name an order.
func TestReserver_UsersWithoutKeysLeaveRoomForKeys(t *testing.T) {
	at(t, func(t *testing.T) {
		_, s := soldOut(t, testOptions())
		other := opened(t, testOptions(), s, nil)
		wants(t, "loser", other.buyUnnamed(), SoldOut)
		other.lookups.waits.Store(userLookups)
		for what, c := range map[string]struct {
			order Order
			waits bool
		}{
			"user": {attempt("loser", ""), false},
			"key":  {attempt("winner", "won"), true},
		} {
			out, closed := other.Cached(other.o.Now(), c.order)
			if out.LookUp != c.waits || closed == c.waits || out.Unverified == c.waits {
				t.Errorf("%s: %+v, %v", what, out, closed)
			}
		}
		wants(t, "winner elsewhere", other.buy("winner", "won"), ReplaySold)
	})
}
