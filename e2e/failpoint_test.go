package e2e

import (
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"sluice/internal/redistest"
)

// The gate may die at any instruction: what it held stays held until the shop is asked, and nothing else is lost.
func TestFailpoints_LedgerBalancesWhereverTheGateDies(t *testing.T) {
	t.Parallel()
	mortal := breakable(t)
	for _, place := range []string{
		"before-reserve", "after-reserve", "before-first-byte", "after-first-byte", "before-last-byte", "after-last-byte",
		"before-answer", "after-answer", "before-settle", "after-settle", "before-client", "after-client",
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			r, shop := redistest.Start(t), book(t, nil)
			addresses, front := fixed(t)
			const units, shoppers = 10, 20
			first := dying(t, mortal, place+":2", r, units, shop.setting(), addresses, `stock.reserve.reservation_ttl = "1s"`)
			stop := make(chan struct{})
			var all sync.WaitGroup
			for u := range shoppers {
				all.Go(func() {
					b := &buyer{user: strconv.Itoa(u), key: fmt.Sprintf("k%d", u)}
					b.insist(func() []string { return []string{front} }, stop)
				})
				if u == 0 { // each place is passed once before the crowd comes: it may be one batch, and nothing after it
					soon(t, "the first has bought", func() bool { return ledgerOf(t, r, "1001").sold == 1 })
				}
			}
			soon(t, "the gate dies", first.gone)
			atDeath := ledgerOf(t, r, "1001")
			first.again(t)
			// What the gate that died had leased from a sweep is free again when that lease has ended: after a minute.
			inTime(t, 4*long, "all is sold and decided", func() bool {
				a := ledgerOf(t, r, "1001")
				return a.held == 0 &&
					a.sold == units
			})
			close(stop)
			all.Wait()
			if shop.booked() != units {
				t.Errorf("%d units sold, but the shop has %d orders; at the gate's death %+v", units, shop.booked(), atDeath)
			}
			shop.audit(t)
		})
	}
}

// dying runs a gate that kills itself at a failpoint; its ledger has so many units.
func dying(t *testing.T, binary, point string, r *redistest.Server, units int, settings ...string) *running {
	t.Helper()
	text := redisAt(r) + "\n" + boundless
	for _, s := range settings {
		text += "\n" + s
	}
	path := file(t, text+"\n"+reserveRoutes)
	ok(t, "stock", "set", "--config", path, "1001", strconv.Itoa(units))
	command := exec.Command(binary, "run", "--config", path)
	command.Env = []string{"SLUICE_FAILPOINT=" + point}
	g := start(t, path, command)
	g.mortal = true
	return g
}
