package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sluice/internal/redistest"
)

// What the shop has said while Redis hangs is not kept by a gate that must end: it stands in the log, its buyers have
// their answers, and the next gate finds out.
func TestReserve_OrdersOfAGateThatEndsWhileRedisHangsAreFoundByTheNext(t *testing.T) {
	t.Parallel()
	const orders = 20
	begun, answer := make(chan bool, orders), make(chan bool)
	answers := sync.OnceFunc(func() { close(answer) })
	r, shop := redistest.Start(t), book(t, func(int, http.ResponseWriter, *http.Request) bool {
		begun <- true
		<-answer
		return false
	})
	t.Cleanup(answers) // before the shop is closed, which waits for its answers
	g := reserves(t, r, orders+5, shop.setting(), unhurried, `stock.reserve.reservation_ttl = "1s"`)
	var all, late sync.WaitGroup
	buyAt := func(group *sync.WaitGroup, user string, want int) {
		group.Go(func() {
			b := &buyer{user: user}
			defer b.leave()
			if status, reason := b.buy(g.front); status != want {
				t.Errorf("user %s heard %d %s", user, status, reason)
			}
		})
	}
	for u := range orders {
		buyAt(&all, strconv.Itoa(u), http.StatusOK)
	}
	for range orders {
		<-begun
	}
	r.Pause()
	for u := range 5 { // the outcome of these is unknown; they never reach the shop
		buyAt(&late, fmt.Sprint("late", u), http.StatusServiceUnavailable)
	}
	soon(t, "Redis is missed", func() bool {
		return strings.Contains(g.log.String(), "Redis answers later than stock.redis.timeout")
	})
	late.Wait()
	g.terminate()
	g.logs(t, `"draining"`)
	answers()
	all.Wait()
	if code := g.stopped(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := strings.Count(g.log.String(), "settlement was not kept"); n != orders {
		t.Errorf("%d settlements in the log", n)
	}
	r.Resume()
	g.again(t)
	soon(t, "all is decided", func() bool { return ledgerOf(t, r, "1001").held == 0 })
	if a := ledgerOf(t, r, "1001"); a.sold != orders || shop.booked() != orders {
		t.Errorf("ledger %+v, %d orders at the shop", a, shop.booked())
	}
	shop.audit(t)
}
