package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// Redis' clock may be wrong, or put right, during a sale: holds end by the gates' clocks, a sale that is on stays on,
// and what is sold is what there is.
func TestClock_RedisClockMayJumpDuringASale(t *testing.T) {
	testkit.Nightly(t, "it waits for sweeps in real time")
	t.Parallel()
	const units, lost = 60, 4
	r, turn := redistest.StartWithClock(t)
	shop := book(t, nil)
	shop.fail = func(r *http.Request) bool { // their outcome is unknown; asked, the shop says that it has none of them
		c, err := r.Cookie("uid")
		return err == nil && len(c.Value) == 1
	}
	settings := []string{
		strings.Replace(shop.setting(), `"cancel_then_release"`, `"release_after_deadline"`, 1),
		`stock.reserve.reservation_ttl = "15m"`, fmt.Sprintf(`
[[sale]]
name = "now"
skus = ["1001"]
starts = %s
ends = %s`,
			time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), time.Now().Add(30*time.Minute).UTC().Format(time.RFC3339)),
	}
	one := reserves(t, r, units, settings...)
	two := reserves(t, r, 0, settings...)
	shopper, bought := 100, 0
	sells := func(n int) {
		t.Helper()
		var mu sync.Mutex
		var all sync.WaitGroup
		for range n {
			shopper++
			b := &buyer{user: strconv.Itoa(shopper)}
			front := []string{one.front, two.front}[shopper%2]
			all.Go(func() {
				defer b.leave()
				status, reason := b.buy(front)
				mu.Lock()
				defer mu.Unlock()
				if status == 200 {
					bought++
				} else if reason != "sold_out" && reason != "undecided" {
					t.Errorf("shopper %s heard %d %s", b.user, status, reason)
				}
			})
		}
		all.Wait()
	}
	for user := range lost {
		b := &buyer{user: strconv.Itoa(user)}
		b.buy(one.front)
		b.leave()
	}
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour, 24 * time.Hour, 0} {
		turn(ahead)
		soon(t, "Redis' clock has jumped", func() bool {
			off := time.Until(r.Client.Time(t.Context()).Val()) - ahead
			return off > -time.Minute && off < time.Minute
		})
		sells(10)
		time.Sleep(1500 * time.Millisecond) // sweeps and beats of both
		if a := ledgerOf(t, r, "1001"); a.held < lost {
			t.Fatalf("with Redis ahead by %v holds ended by themselves: %+v", ahead, a)
		}
	}
	sells(3 * units)
	soon(t, "all that is known is settled",
		func() bool { return ledgerOf(t, r, "1001") == account{units, lost, units - lost} })
	if bought != units-lost || shop.booked() != bought {
		t.Errorf("%d bought, the shop has %d orders, of %d units", bought, shop.booked(), units-lost)
	}
	shop.audit(t)
}
