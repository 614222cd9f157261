package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// With wait_replicas an order that no replica has in time is rejected, never forwarded, and its unit is given back.
func TestReplicas_OrderOnNoReplicaIsRejectedAndItsUnitSold(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t, "--repl-diskless-sync-delay", "0"), book(t, nil)
	host, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	replica := redistest.Start(t, "--replicaof", host+" "+port)
	soon(t, "the replica is in step", func() bool {
		r.Client.Incr(t.Context(), "nonsense")
		return r.Client.Wait(t.Context(), 1, time.Second).Val() == 1
	})
	g := reserves(t, r, 2, shop.setting(), `stock.reserve.reservation_ttl = "5m"`,
		"stock.redis.wait_replicas = 1\nstock.redis.timeout = \"400ms\"")
	order := func(user int) answer {
		return g.ask("POST", "/api/seckill/1001/order", "Cookie: uid="+fmt.Sprint(user), "Idempotency-Key: key-of-"+
			fmt.Sprint(user))
	}
	first := 100
	soon(t, "an order passes", func() bool {
		first++ // whom the replica kept waiting for too long is told so for good
		return order(first).status == 200
	})
	free := func() bool { return ledgerOf(t, r, "1001") == account{2, 0, 1} }
	soon(t, "the units of those that did not pass are free", free)
	booked := shop.booked()
	replica.Pause()
	a := order(2)
	if a.status != 503 || a.reason != "stock_error" {
		t.Errorf("an order that no replica has was answered %d %s", a.status, a.reason)
	}
	if n := shop.booked(); n != booked {
		t.Errorf("%d such orders reached the shop", n-booked)
	}
	soon(t, "the log says so", func() bool {
		return strings.Contains(g.log.String(), "too few replicas have the newest reservations")
	})
	replica.Resume()
	soon(t, "its unit is free again, long before it is overdue", free)
	other := 200
	soon(t, "another client has it", func() bool {
		other++
		return order(other).status == 200
	})
	if a := order(2); a.reason == "sold_out" && shop.booked() != 2 || a.status == 200 {
		t.Errorf("the client that was rejected hears %d %s", a.status, a.reason)
	}
	soon(t, "all is sold and decided", func() bool { return ledgerOf(t, r, "1001") == account{2, 0, 2} })
	shop.audit(t)
}
