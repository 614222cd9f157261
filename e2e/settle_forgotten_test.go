package e2e

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"sluice/internal/redistest"
)

// The database knows a reservation that the ledger has forgotten, since its end was trimmed before it was settled. It
// is held again, and the gate asks the shop: an order is sold, and one that the shop does not have is released.
func TestSettlement_ForgottenReservationIsAskedAbout(t *testing.T) {
	t.Parallel()
	for answer, want := range map[int]string{http.StatusOK: "2 units sold", http.StatusNotFound: "1 units sold"} {
		t.Run(strconv.Itoa(answer), func(t *testing.T) { forgetsReservation(t, answer, want) })
	}
}

func forgetsReservation(t *testing.T, answer int, want string) {
	t.Parallel()
	var tells atomic.Bool // the gate, whose reservations last, must hear nothing before
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/by-serial/") {
			status := http.StatusServiceUnavailable
			if tells.Load() {
				status = answer
			}
			w.WriteHeader(status)
			return
		}
		w.WriteHeader(http.StatusAccepted) // neither confirmed nor released
	})
	redis := redistest.Start(t)
	const undecided = "stock.reserve.confirm_on = []\nstock.reserve.on_not_found = \"cancel_then_release\""
	g := reserves(t, redis, 9, shop.setting(), keepsChanges, undecided, "stock.reserve.reservation_ttl = \"1h\"",
		"stock.reserve.status_url = "+strconv.Quote(shop.url+"/by-serial/{serial}"))
	database := "sqlite:" + filepath.Join(t.TempDir(), "settle.db")
	begin := func(verify string) *running {
		return settler(t, database, redisAt(redis), "stock.reserve.reservation_ttl = \"1s\"", // its time is over soon
			"settle.verify = "+strconv.Quote(verify))
	}
	s := begin("0s")
	for _, serial := range []string{"forgotten", "known"} {
		b := &buyer{user: serial, sku: "1001", key: serial}
		if status, _ := b.buy(g.front); status != http.StatusAccepted {
			t.Fatalf("order %s: %d", serial, status)
		}
		b.leave()
	}
	soon(t, "both are settled", func() bool {
		return strings.Contains(settle(t, "verify", "1001", "--config", s.file).out, "equal; 2 records")
	})
	s.die()
	ok(t, "reservation", "release", "forgotten", "--sku", "1001", "--config", g.file)
	ok(t, "reservation", "confirm", "known", "--sku", "1001", "--config", g.file)
	redis.Client.HDel(t.Context(), "sluice:shop:{1001}:r", "forgotten") // as a day later
	redis.Client.ZRem(t.Context(), "sluice:shop:{1001}:x", "forgotten")
	redis.Client.XTrimMaxLen(t.Context(), "sluice:shop:{1001}:q", 1)
	tells.Store(true)
	s = begin("1s") // what is not over at the first look is seen by a later one
	soon(t, "the shop's word is settled", func() bool {
		return strings.Contains(settle(t, "verify", "1001", "--config", s.file).out, "equal; 2 records, "+want)
	})
	if out := settle(t, "status", "--config", s.file).out; strings.Contains(out, "conflict") {
		t.Errorf("status: %s", out)
	}
}
