package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"sluice/internal/redistest"
)

// lasting is a Redis that has each change on disk before it answers.
var lasting = []string{"--appendonly", "yes", "--appendfsync", "always"}

// sale lets shoppers, each with a key, ask until they have an answer that is final.
func sale(shoppers int, front string) (end func()) {
	stop := make(chan struct{})
	var all sync.WaitGroup
	for u := range shoppers {
		all.Go(func() {
			b := &buyer{user: strconv.Itoa(u), key: fmt.Sprintf("k%d", u)}
			b.insist(func() []string { return []string{front} }, stop)
		})
	}
	return func() { close(stop); all.Wait() }
}

func TestReserve_SaleGoesOnByItselfWhenRedisIsBack(t *testing.T) {
	t.Parallel()
	const units = 300
	back := make(chan struct{}) // the sale is not over before Redis is back
	r, shop := redistest.Start(t, lasting...), book(t, func(n int, _ http.ResponseWriter, _ *http.Request) bool {
		if n > 2*units/3 {
			<-back
		}
		return false
	})
	g := reserves(t, r, units, shop.setting(), `stock.reserve.reservation_ttl = "1s"`,
		"limits.concurrency.max_in_flight = "+
			"8\nlimits.concurrency.max_queue = 1000\nlimits.concurrency.queue_timeout = \"1s\"")
	end := sale(2*units, g.front)
	soon(t, "a third is sold", func() bool { return ledgerOf(t, r, "1001").sold > units/3 })
	r.Kill()
	r.Restart()
	sold := ledgerOf(t, r, "1001").sold
	close(back)
	took := soon(t, "the sale goes on", func() bool { return ledgerOf(t, r, "1001").sold > sold })
	t.Logf("the first unit is sold %v after Redis is back", took)
	soon(t, "all is sold and decided", func() bool { a := ledgerOf(t, r, "1001"); return a.held == 0 && a.sold == units })
	end()
	if a := ledgerOf(t, r, "1001"); a != (account{units, 0, units}) || shop.booked() != units {
		t.Errorf("ledger %+v, %d orders at the shop", a, shop.booked())
	}
	shop.audit(t)
}
