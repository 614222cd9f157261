package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// trial is a kind of shop that is sent many orders, one after the other by each of so many shoppers.
type trial struct {
	shop     string
	deed     string // its name in deeds; "" = do
	do       deed
	shoppers int
	thinks   time.Duration // a shopper waits for up to so long before an order
	settings string
	answered float64 // the share of the orders that must get the shop's own answer
}

var trials = []trial{
	{shop: "closes idle connections after 50 ms", do: tired, deed: "answers", shoppers: 64, thinks: 100 * time.Millisecond, answered: 0.999},
	{shop: "answers, and closes as the next order arrives", deed: "closes idle", shoppers: 8},
	{shop: "resets after reading", deed: "resets", shoppers: 16},
	{shop: "takes the order, answers 500", deed: "fails after it", shoppers: 16, answered: 1},
	{shop: "hangs", deed: "hangs", shoppers: 200, settings: `upstream.response_timeout = "50ms"`},
	{shop: "answers half a head", deed: "half a head", shoppers: 16},
}

// tired answers, and closes a connection on which nothing more comes: the usual end of a kept one, but much sooner.
func tired(c net.Conn, r *http.Request) bool {
	return says(c, reply("200 OK", r)) && c.SetReadDeadline(time.Now().Add(50*time.Millisecond)) == nil
}

// boundless lets a few clients be a crowd.
const boundless = unlimited + `
limits.connection.max_open_per_ip = 10000
limits.window.max_per_sku = 0
limits.concurrency.max_in_flight = 2000
upstream.max_conns = 2000`

// The law of TestOrderReachesTheShopAtMostOnceWhateverTheShopDoes, with numbers that find what is rare.
func TestOneOfManyOrdersReachesTheShopAtMostOnce(t *testing.T) {
	total, err := strconv.Atoi(os.Getenv("SLUICE_ORDERS"))
	if err != nil {
		t.Skip("SLUICE_ORDERS does not say how many orders of each kind to send")
	}
	var rows strings.Builder
	for _, trial := range trials {
		t.Run(trial.shop, func(t *testing.T) {
			if trial.do == nil {
				trial.do = deeds[trial.deed]
			}
			bad := misbehave(t, trial.do)
			g := stocked(t, "upstream.targets = "+quoted(bad.url), boundless, trial.settings, strings.Replace(routes, `"POST /api`, `"/api`, 1))
			for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "GET"} {
				before := bad.arrivals.Load()
				trial.run(t, g, bad, method, total)
				arrived := int(bad.arrivals.Load() - before)
				if share := float64(arrived) / float64(total); share < trial.answered {
					t.Errorf("%s: only %.2f%% of the orders arrived and got an answer", method, 100*share)
				}
				fmt.Fprintf(&rows, "| %s | %s | %d | %d | %d |\n", trial.shop, method, total, arrived, bad.most())
			}
		})
	}
	t.Logf("what the shop does, method, orders, arrived, most often one serial\n%s", rows.String())
	if *update {
		write(t, "orders", "| the shop | method | orders sent | arrived | one serial, at most |\n| --- | --- | --- | --- | --- |\n"+rows.String())
	}
}

// run sends the orders.
func (trial trial) run(t *testing.T, g *running, bad *rogue, method string, total int) {
	var all sync.WaitGroup
	for s := range trial.shoppers {
		all.Go(func() {
			for i := s; i < total; i += trial.shoppers {
				if trial.thinks > 0 {
					time.Sleep(rand.N(trial.thinks)) // the moment matters, not how long it takes
				}
				attempt(t, g, bad, order{method, trial.deed, fmt.Sprintf("%s %d", method, i)})
			}
		})
	}
	all.Wait()
	if n := bad.most(); n > 1 {
		t.Errorf("%s: the shop saw an order %d times", method, n)
	}
}

// most is how often the shop saw the order that it saw most often.
func (l *ledger) most() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seen := range l.serials {
		n = max(n, seen)
	}
	return n
}
