package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// A ledger vanishes in the middle of a sale, at a random moment, in a random way, with gates that are killed around it.
// The messages alone guide the test, and no unit is sold twice. SLUICE_RECREATES says how many schedules to play; 2 by
// default. SLUICE_RECREATES_FROM is the first one of them.
func TestRecreate_LedgerThatVanishesInASaleSellsNoUnitTwice(t *testing.T) {
	testkit.Nightly(t, "it runs long, by random schedules")
	t.Parallel()
	schedules, err := strconv.Atoi(os.Getenv("SLUICE_RECREATES"))
	if err != nil {
		schedules = 2
	}
	from, _ := strconv.Atoi(os.Getenv("SLUICE_RECREATES_FROM"))
	for n := range uint64(schedules) {
		seed := uint64(from) + n
		t.Run(fmt.Sprint(seed), func(t *testing.T) { vanishesOnce(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

// headerTimeout is how long an order of a killed gate may still be on its way to the shop.
const headerTimeout = time.Second

func vanishesOnce(t *testing.T, dice *rand.Rand) {
	const units = 80
	r, shop := redistest.Start(t), book(t, nil)
	gates, fronts, survivor := []*running{}, []string{}, false
	for i := range 1 + dice.IntN(2) {
		addresses, front := fixed(t)
		settings := []string{addresses, shop.setting(), `stock.reserve.reservation_ttl = "1s"`,
			fmt.Sprintf("upstream.response_header_timeout = %q", headerTimeout),
			"limits.concurrency.max_in_flight = 4", "limits.concurrency.max_queue = 1000",
			`limits.concurrency.queue_timeout = "1s"`}
		if i == 0 || dice.IntN(2) == 0 {
			settings = append(settings, "server.state_dir = "+strconv.Quote(t.TempDir()))
		}
		gates, fronts = append(gates, reserves(t, r, units*(1-min(i, 1)), settings...)), append(fronts, front)
	}
	_, end := shopping(units+20, 6, 1, fronts)
	soon(t, "some are sold", func() bool { return shop.booked() > units/8+dice.IntN(units/2) })

	killed := dice.Perm(len(gates))[:dice.IntN(len(gates)+1)]
	kill := func() {
		for _, i := range killed {
			gates[i].die()
		}
	}
	survivor = len(killed) < len(gates)
	how, vanish := vanishing(t, r, dice)
	pause := time.Duration(dice.IntN(60)) * time.Millisecond
	if dice.IntN(2) == 0 {
		kill()
		time.Sleep(pause) // drawn for this schedule
		vanish()
	} else {
		vanish()
		time.Sleep(pause) // drawn for this schedule
		kill()
	}
	restart := func() {
		for _, i := range killed {
			gates[i] = gates[i].again(t)
		}
	}
	late := survivor && dice.IntN(2) == 0 // they return to a ledger that was made again
	if !late {
		restart()
	}
	if len(killed) > 0 {
		time.Sleep(headerTimeout + headerTimeout/2) // as the runbook wants it before the orders are exported
	}
	live := gates[0]
	if late {
		live = gates[slices.IndexFunc(gates, func(g *running) bool { return !g.mortal })]
	}
	last := &buyer{user: "last", key: "last", sku: "1001"}
	defer last.leave()
	soon(t, "a gate notices what is gone", func() bool {
		last.buy(fronts[slices.Index(gates, live)]) // all others may have been served before
		return r.Client.ZScore(t.Context(), "sluice:shop:skus", "1001").Err() == nil
	})
	t.Logf("%s, %d of %d gates killed, late %v, with %d sold", how, len(killed), len(gates), late, shop.booked())
	recreates(t, shop, live, units)
	if late {
		restart()
	}
	inTime(t, 2*long, "the sale ends", func() bool {
		a := ledgerOf(t, r, "1001")
		return a.held == 0 && a.sold == units
	})
	end()
	if n := shop.booked(); n != units {
		t.Errorf("%d orders at the shop for %d units", n, units)
	}
	shop.audit(t)
}

// vanishing is a way in which a ledger vanishes: whole, or some of its keys.
func vanishing(t *testing.T, r *redistest.Server, dice *rand.Rand) (how string, vanish func()) {
	switch dice.IntN(3) {
	case 0:
		return "flushed", func() { r.Client.FlushAll(t.Context()) }
	case 1:
		return "restarted without data", func() { r.Kill(); r.Restart() }
	}
	parts := []string{"s", "r", "u", "x"}
	dice.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	parts = parts[:1+dice.IntN(len(parts))]
	if slices.Equal(parts, []string{"x"}) {
		parts = []string{"s"}
	}
	return "evicted " + strings.Join(parts, " "), func() {
		for _, part := range parts {
			r.Client.Del(t.Context(), "sluice:shop:{1001}:"+part)
		}
	}
}

// recreates does what the messages say, from a total that is set anew on.
func recreates(t *testing.T, shop *bookshop, g *running, units int) {
	t.Helper()
	s := run(t, "", "stock", "set", "--config", g.file, "1001", strconv.Itoa(units))
	if s.code == 0 {
		t.Fatal("stock set made a ledger without the orders of before")
	}
	s = follow(t, s.complaint, g.file, units, shop.export(t))
	if s.code != 0 && strings.Contains(s.complaint, "sluice stock recover 1001 --from FILE --apply") {
		s = run(t, "", "stock", "recover", "1001", "--from", shop.export(t), "--apply", "--config", g.file)
	}
	if s.code != 0 {
		t.Fatalf("exit code %d: %s", s.code, s.complaint)
	}
}
