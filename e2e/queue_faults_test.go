package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// The shop limits single users by 429: their orders are put off, and stop no other.
func TestDelivery_TooManyRequestsPutOffTheirOwnOrderAlone(t *testing.T) {
	t.Parallel()
	const limited, others = 20, 60
	r, shop := redistest.Start(t), openLameShop(t)
	shop.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.Header.Get("Cookie"), "uid=limited") {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
			return false
		}
		return true
	}
	g := gate(t, redisAt(r), boundless, shop.patient(shop.server.URL), "queue.max_in_flight = 2", waitingRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", fmt.Sprint(limited+others))
	for i := range limited + others {
		user := fmt.Sprint("uid=limited", i)
		if i >= limited {
			user = fmt.Sprint("uid=", i)
		}
		if w := g.call(t, "POST", orderPath, "", "Cookie", user); w.status != 202 {
			t.Fatalf("%+v", w)
		}
	}
	testkit.Eventually(t, "the orders of all others are made", func() bool { return shop.orders() == others })
}
