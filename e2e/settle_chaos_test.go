package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/dbtest"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// What the crash test of the settlement sells, and how long it waits at most until everything is settled.
const (
	crashSKUs     = 4
	crashBuyers   = 32
	crashPatience = 15 * time.Minute
)

// settleCrash is a sale by two gates that two settlers book, while settlers and database are killed.
type settleCrash struct {
	*testing.T
	orders   int
	redis    *redistest.Server
	gates    [2]*running
	database *dbtest.Server // nil = SQLite, which is killed with the settlers
	config   string         // of the settlers

	confirmed, refunded atomic.Int64
	serials             chan [2]string // of orders to be refunded: SKU, serial
	settlers            [2]*exec.Cmd
	logs                [2]*journal
}

// Orders are sold by real gates: 8 of 10 are confirmed, one is released, one refunded. Settlers are killed every 20 to
// 250 ms, the database every 5 to 9 s. In the end every order is the same on both sides, and the books balance.
// SLUICE_SETTLE_ORDERS says how many orders: 2,000 by default.
func TestSettlement_BalancesAfterCrashes(t *testing.T) {
	testkit.Nightly(t, "it runs long")
	orders, err := strconv.Atoi(os.Getenv("SLUICE_SETTLE_ORDERS"))
	if err != nil {
		orders = 2000
	}
	t.Run("postgres", func(t *testing.T) { newSettleCrash(t, orders, dbtest.Postgres(t)).play() })
	t.Run("mariadb", func(t *testing.T) { newSettleCrash(t, orders, dbtest.MariaDB(t)).play() })
	t.Run("sqlite", func(t *testing.T) { newSettleCrash(t, orders, nil).play() })
}

func newSettleCrash(t *testing.T, orders int, database *dbtest.Server) *settleCrash {
	c := &settleCrash{T: t, orders: orders / crashSKUs * crashSKUs, redis: redistest.Start(t), database: database,
		serials: make(chan [2]string, orders)}
	shop := open(t, c.serve)
	url := "sqlite:" + filepath.Join(t.TempDir(), "settle.db")
	if database != nil {
		url = database.URL
	}
	for i := range c.gates {
		c.gates[i] = reserves(t, c.redis, 0, shop.setting(), keepsChanges, `stock.redis.timeout = "5s"`)
	}
	for i := range crashSKUs {
		ok(t, "stock", "set", "--admin", c.gates[0].admin, crashSKU(i), strconv.Itoa(orders))
	}
	c.config = file(t, fmt.Sprintf("upstream.targets = [\"http://127.0.0.1:1\"]\nsettle.database = %q\n"+
		"settle.listen = \"\"\n%s\n%s\n%s", url, keepsChanges, redisAt(c.redis), reserveRoutes))
	settleOK(t, "migrate", "--config", c.config)
	return c
}

func crashSKU(i int) string { return strconv.Itoa(1001 + i) }

// serve is the shop: it rejects every tenth order, and cancels another tenth later.
func (c *settleCrash) serve(w http.ResponseWriter, r *http.Request) {
	user := r.Header.Get("Cookie")
	switch user[len(user)-1] {
	case '9':
		w.WriteHeader(http.StatusConflict)
		return
	case '8':
		c.serials <- [2]string{strings.Split(r.URL.Path, "/")[3], r.Header.Get("Idempotency-Key")}
	}
	c.confirmed.Add(1)
	_, _ = io.WriteString(w, "ordered")
}

func (c *settleCrash) play() {
	var selling, refunding sync.WaitGroup
	for n := range crashBuyers {
		selling.Go(func() { c.sell(n) })
	}
	for range 4 {
		refunding.Go(c.refund)
	}
	sold := make(chan struct{})
	go func() {
		selling.Wait()
		close(c.serials)
		refunding.Wait()
		close(sold)
	}()
	kills, deaths := c.kill(sold)
	records, units := 0, int64(0)
	for i := range crashSKUs {
		out := settleOK(c.T, "verify", crashSKU(i), "--config", c.config)
		var sku, at, word string
		var n int
		var sum, booked, deducted int64
		_, err := fmt.Sscanf(out, "%s at %s %s %d records, %d units sold, %d booked, %d deducted",
			&sku, &at, &word, &n, &sum, &booked, &deducted)
		if err != nil || word != "equal;" || sum != booked || sum != deducted {
			c.Errorf("verify %s: %q, %v", crashSKU(i), out, err)
		}
		records, units = records+n, units+sum
	}
	if want := c.confirmed.Load() - c.refunded.Load(); records != c.orders || units != want {
		c.Errorf("%d records, %d units sold: want %d, %d", records, units, c.orders, want)
	}
	c.Logf("%d orders, %d settlers killed, database killed %d times", records, kills, deaths)
}

// sell lets one shopper after another buy one unit. On a busy machine one may have to come again.
func (c *settleCrash) sell(n int) {
	b := &buyer{}
	defer b.leave()
	for user := n; user < c.orders; user += crashBuyers {
		b.user, b.sku = strconv.Itoa(user), crashSKU(user/10%crashSKUs)
		b.key = "order-" + b.user
		want := http.StatusOK
		if user%10 == 9 {
			want = http.StatusConflict
		}
		status, reason := b.buy(c.gates[n%2].front)
		for begin := time.Now(); status != want && isBusy(status) && time.Since(begin) < crashPatience; {
			time.Sleep(10 * time.Millisecond) // between two tries
			status, reason = b.buy(c.gates[n%2].front)
		}
		if status != want {
			c.Errorf("user %d heard %d %s: want %d", user, status, reason, want)
		}
	}
}

func isBusy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// refund refunds what the shop cancels, once it is confirmed.
func (c *settleCrash) refund() {
	for order := range c.serials {
		inTime(c.T, crashPatience, "the order "+order[1]+" is refunded", func() bool {
			at := "http://" + c.gates[0].admin + "/api/v1/reservations/" + order[1] + "/refund?sku=" + order[0]
			resp, err := c.gates[0].client.Post(at, "application/json", nil)
			if err != nil {
				return false
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			return resp.StatusCode == http.StatusOK // 409 until it is confirmed
		})
		c.refunded.Add(1)
	}
}

// kill kills settlers and database in turn until everything is sold and settled.
func (c *settleCrash) kill(sold <-chan struct{}) (kills, deaths int) {
	defer func() {
		for i := range c.settlers {
			c.end(i)
		}
	}()
	c.begin(0)
	c.begin(1)
	dies := time.Now().Add(randomly(5000, 9000))
	for over, asked, begin := false, time.Now(), time.Now(); ; kills++ {
		c.waitForReady(kills % 2)
		time.Sleep(randomly(20, 250)) // a kill comes at any moment
		c.end(kills % 2)
		c.begin(kills % 2)
		if c.database != nil && time.Now().After(dies) {
			c.database.Kill()
			time.Sleep(randomly(20, 250)) // it is away for some time
			c.database.Restart()
			dies, deaths = time.Now().Add(randomly(5000, 9000)), deaths+1
		}
		select {
		case <-sold:
			over = true
		default:
		}
		if over && time.Since(asked) > 2*time.Second {
			asked = time.Now()
			if c.settled() {
				return kills, deaths
			}
		}
		if time.Since(begin) > crashPatience {
			c.Fatalf("not everything is settled: %s\n%s", settle(c.T, "status", "--config", c.config).out, c.logs[0])
		}
	}
}

func randomly(least, most int) time.Duration {
	return time.Duration(least+rand.IntN(most-least)) * time.Millisecond
}

func (c *settleCrash) begin(i int) {
	c.Helper()
	c.logs[i] = new(journal)
	s := exec.Command(settleBinary, "run", "--config", c.config)
	s.Env, s.Stderr = surroundings(), c.logs[i]
	if err := s.Start(); err != nil {
		c.Fatal(err)
	}
	c.settlers[i] = s
}

// waitForReady waits for a settler that has just begun, so that it comes to work also on a slow machine.
func (c *settleCrash) waitForReady(i int) {
	for begin := time.Now(); time.Since(begin) < long; time.Sleep(5 * time.Millisecond) { // the pace of the orders
		if strings.Contains(c.logs[i].String(), "settle: ready") {
			return
		}
	}
}

func (c *settleCrash) end(i int) {
	if s := c.settlers[i]; s != nil {
		_ = s.Process.Kill()
		_ = s.Wait()
		c.settlers[i] = nil
	}
}

// settled reports whether no change of a SKU waits.
func (c *settleCrash) settled() bool {
	out := settle(c.T, "status", "--config", c.config).out
	for i := range crashSKUs {
		if _, line, found := strings.Cut("\n"+out, "\n"+crashSKU(i)+" "); !found || strings.Fields(line)[1] != "0" {
			return false
		}
	}
	return true
}
