package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// A sale that a reload brings is on the shared clock from its first request on, not on this machine's until a request
// has asked Redis.
func TestSchedule_SaleOfAReloadDoesNotOpenByAWrongClock(t *testing.T) {
	t.Parallel()
	r, shop, bin := redistest.Start(t), open(t, nil), breakable(t)
	settings := strings.Join([]string{listeners + `server.shutdown_delay = "0s"`, redisAt(r), boundless, shop.setting(),
		strings.Replace(routes, `gate = "check"`, `gate = "limit"`, 1)}, "\n")
	for _, ahead := range []time.Duration{1500 * time.Millisecond, time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			g := clocked(t, ahead.String(), file(t, settings), bin)
			var early atomic.Bool // an order was
			stop := ordering(t, []*running{g}, func(_, _ int, reason string) {
				if reason == "not_started" {
					early.Store(true)
				}
			})
			defer stop()
			soon(t, "early orders are rejected", func() bool { // a busy machine may read the file when the sale is on
				begins := time.Now().Add(ahead - 100*time.Millisecond) // over for this machine, early by Redis
				g.rewrite(settings+"\n"+saleOf(begins), true)
				arrived := shop.arrivals.Load()
				for !early.Load() && time.Now().Before(begins) {
					time.Sleep(time.Millisecond) // between two looks
				}
				n := shop.arrivals.Load() - arrived
				if n > 2 && time.Now().Before(begins) { // two may be on their way
					t.Errorf("%d orders reached the shop before the start", n)
				}
				return early.Load()
			})
		})
	}
}

// slowOrder sends the head of an order; the body is sent by the func that it returns, which hears the answer.
func (g *running) slowOrder(t *testing.T, sku, user string) (finish func() (status int, reason string)) {
	t.Helper()
	c, err := net.Dial("tcp", g.front)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "POST /api/seckill/%s/order HTTP/1.1\r\nHost: h\r\nCookie: uid=%s\r\nContent-Type: "+
		"text/plain\r\nContent-Length: 2\r\n\r\na", sku, user)
	return func() (int, string) {
		fmt.Fprint(c, "b")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("X-Sluice-Reason")
	}
}

// What was admitted into the gate before the pause, and not yet forwarded, is not forwarded after it.
func TestOverride_SlowOrderDoesNotOutliveAPause(t *testing.T) {
	t.Parallel()
	for _, gateName := range []string{"limit", "check", "reserve"} {
		t.Run(gateName, func(t *testing.T) {
			r, shop := redistest.Start(t), open(t, nil)
			r.Client.Set(t.Context(), key, 100, 0)
			g := gate(t, redisAt(r), boundless, shop.setting(), saleOf(time.Now().Add(-time.Minute)),
				strings.Replace(routes, `"check"`, `"`+gateName+`"`, 1))
			if gateName == "reserve" {
				ok(t, "stock", "set", "--config", g.file, "1001", "100")
			}
			soon(t, "orders go on", func() bool { return g.order("1001").is(200, "") })
			finish := g.slowOrder(t, "1001", "slow")
			soon(t, "the gate reads its body", func() bool { return g.metric("sluice_body_memory_bytes") > 0 })
			ok(t, "sale", "pause", "--config", g.file, "rush")
			soon(t, "the pause is known", func() bool { return g.order("1001").is(503, "paused") })
			arrived := shop.arrivals.Load()
			if status, reason := finish(); status != 503 || reason != "paused" {
				t.Errorf("a dawdling order hears %d %s", status, reason)
			}
			if n := shop.arrivals.Load() - arrived; n != 0 {
				t.Errorf("%d orders reached the shop after the pause", n)
			}
		})
	}
}

// beats is how often the gate has read what operators say of its sales.
func (g *running) beats() float64 { return g.metric("sluice_sale_beats_total", `outcome="answered"`) }

// What is said of one sale is not said of another of the same SKU.
func TestOverride_PauseOfALaterSaleLeavesTheCurrentOneAlone(t *testing.T) {
	t.Parallel()
	now := time.Now()
	const form = "2006-01-02T15:04:05.000Z07:00"
	later := fmt.Sprintf("[[sale]]\nname = \"later\"\nskus = [\"1001\"]\nstarts = %s\nends = %s\n",
		now.Add(2*time.Hour).Format(form), now.Add(3*time.Hour).Format(form))
	for _, word := range []string{"pause", "end"} {
		t.Run(word, func(t *testing.T) {
			r, shop := redistest.Start(t), open(t, nil)
			g := reserves(t, r, 100, shop.setting(), saleOf(now.Add(-time.Minute)), later)
			soon(t, "orders go on", func() bool { return g.order("1001").is(200, "") })
			ok(t, "sale", word, "--config", g.file, "later")
			known := g.beats() + 2 // the next one may have been under way
			soon(t, "the gate knows it", func() bool { return g.beats() >= known })
			b := &buyer{user: "u-" + word}
			defer b.leave()
			if status, reason := b.buy(g.front); status != 200 {
				t.Errorf("after %s of the later sale the one that is on says %d %s", word, status, reason)
			}
		})
	}
}

// A pause is kept by each instance that knows of it, though Redis comes back as it was before.
func TestOverride_PauseOutlivesARedisThatForgotIt(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), open(t, nil)
	r.Client.Set(t.Context(), key, 100, 0)
	g := gate(t, redisAt(r), boundless, shop.setting(), saleOf(time.Now().Add(-time.Minute)))
	says := func(word string, status int, reason string) {
		ok(t, "sale", word, "--config", g.file, "rush")
		soon(t, word+" is known", func() bool { return g.order("1001").is(status, reason) })
	}
	says("pause", 503, "paused")
	says("resume", 200, "")
	old := r.Client.HGetAll(t.Context(), "sluice:shop:sales").Val()
	says("pause", 503, "paused")
	r.Client.HSet(t.Context(), "sluice:shop:sales", old) // what a fail-over does that lost the last write
	known := g.beats() + 2                               // the next one may have been under way
	soon(t, "the gate has read it", func() bool {
		g.order("1001").must(t, 503, "paused")
		return g.beats() >= known
	})
	g.order("1001").must(t, 503, "paused")
	says("resume", 200, "")
}

// Shoppers are not sent home between two sales that follow each other.
func TestSchedule_NoClientHearsEndedBetweenTwoSales(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), open(t, nil)
	const form = "2006-01-02T15:04:05.000Z07:00"
	sale := func(name string, starts, ends time.Time) string {
		return fmt.Sprintf("[[sale]]\nname = %q\nskus = [\"1001\"]\nstarts = %s\nends = %s\n", name, starts.Format(form),
			ends.Format(form))
	}
	earlier := time.Now().Add(-time.Hour)
	alone := sale("a", earlier, earlier.Add(2*time.Hour))
	g := reserves(t, r, 100000, shop.setting(), alone)
	heard := map[string]int{}
	soon(t, "orders go on", func() bool { return g.order("1001").is(200, "") })
	begins := time.Now().Add(2 * time.Second).Truncate(time.Millisecond)
	g.rewrite(g.change(alone, sale("a", earlier, begins)+sale("b", begins, begins.Add(time.Hour))), true)
	for n := 0; n < 50 || time.Now().Before(begins.Add(500*time.Millisecond)); n++ {
		b := &buyer{user: fmt.Sprint("n", n)}
		status, reason := b.buy(g.front)
		b.leave()
		heard[fmt.Sprint(status, reason)]++
		if s, _ := g.shows("/1001"); s.Phase != "open" {
			heard["page "+s.Phase]++
		}
		time.Sleep(5 * time.Millisecond) // a client that asks again and again
	}
	if len(heard) > 1 || heard["200"] == 0 {
		t.Errorf("%v, want 200 alone", heard)
	}
}
