package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// A gate and Redis are killed in the same minute, in any order and with some time between. The gate has a state folder:
// the sale goes on without an operator, and no unit is sold twice. SLUICE_RETURNS says how many schedules to play;
// 20 by default. SLUICE_RETURNS_FROM is the first one of them.
func TestReturn_GateAndRedisThatDieTogetherOpenByThemselves(t *testing.T) {
	testkit.Nightly(t, "it runs long, by random schedules")
	t.Parallel()
	schedules, err := strconv.Atoi(os.Getenv("SLUICE_RETURNS"))
	if err != nil {
		schedules = 20
	}
	from, _ := strconv.Atoi(os.Getenv("SLUICE_RETURNS_FROM"))
	for n := range uint64(schedules) {
		seed := uint64(from) + n
		t.Run(fmt.Sprint(seed), func(t *testing.T) { returnsOnce(t, rand.New(rand.NewPCG(seed, 8))) })
	}
}

func returnsOnce(t *testing.T, dice *rand.Rand) {
	const units = 80
	persistence := lasting
	if dice.IntN(2) == 0 {
		persistence = []string{"--appendonly", "yes", "--appendfsync", "everysec"}
	}
	r, shop := redistest.Start(t, persistence...), book(t, nil)
	addresses, front := fixed(t)
	other, elsewhere := fixed(t)
	settings := func(addresses string) []string {
		return []string{addresses, "server.state_dir = " + strconv.Quote(t.TempDir()), shop.setting(),
			`stock.reserve.reservation_ttl = "1s"`,
			"limits.concurrency.max_in_flight = 4", "limits.concurrency.max_queue = 1000",
			`limits.concurrency.queue_timeout = "1s"`}
	}
	gates := []*running{reserves(t, r, units, settings(addresses)...)}
	fronts := []string{front}
	if dice.IntN(2) == 0 {
		gates, fronts = append(gates, reserves(t, r, units, settings(other)...)), append(fronts, elsewhere)
	}
	// Redis delays what it writes while the disk is busy. A ledger is made long before a sale: its creation is not lost.
	soon(t, "the ledger is in Redis' file", func() bool { return r.Number("persistence", "aof_buffer_length:") == 0 })
	_, end := shopping(units+20, 6, 1, fronts)
	soon(t, "some are sold", func() bool { return shop.booked() > units/8+dice.IntN(units/2) })

	killed := gates[:1+dice.IntN(len(gates))]
	kill := func() {
		for _, g := range killed {
			g.die()
		}
	}
	pause := time.Duration(dice.IntN(60)) * time.Millisecond
	if dice.IntN(2) == 0 {
		kill()
		time.Sleep(pause) // drawn for this schedule
		r.Kill()
	} else {
		r.Kill()
		time.Sleep(pause) // drawn for this schedule
		kill()
	}
	r.Restart()
	time.Sleep(pause) // drawn for this schedule
	for i := range killed {
		gates[i] = killed[i].again(t)
	}
	took := inTime(t, 2*long, "the sale ends by itself", func() bool {
		a := ledgerOf(t, r, "1001")
		return a.held == 0 && a.sold == units
	})
	end()
	if n := shop.booked(); n != units {
		t.Errorf("%d orders at the shop for %d units", n, units)
	}
	shop.audit(t)
	t.Logf("%s, %d of %d gates killed: ended after %v", strings.Join(persistence, " "), len(killed), len(gates), took)
}
