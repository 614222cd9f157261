package e2e

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

const reserveRoutes = `
[[route]]
name = "order"
match = "POST /api/seckill/{sku}/order"
gate = "reserve"
sku = "$path_sku"
user = "$cookie_uid"

[[route]]
name = "everything-else"
match = "/"
gate = "pass"
`

// account is a SKU's ledger, as it stands in Redis.
type account struct{ total, held, sold int }

func ledgerOf(t *testing.T, r *redistest.Server, sku string) (a account) {
	t.Helper()
	v, err := r.Client.HMGet(context.Background(), "sluice:shop:{"+sku+"}:s", "total", "held", "sold").Result()
	if err != nil {
		t.Fatal(err)
	}
	for i, to := range []*int{&a.total, &a.held, &a.sold} {
		text, _ := v[i].(string)
		if *to, err = strconv.Atoi(text); err != nil {
			t.Fatalf("ledger of %s: %v", sku, v)
		}
	}
	return a
}

// reserves runs a gate that reserves; its ledger has so many units.
func reserves(t *testing.T, r *redistest.Server, units int, settings ...string) *running {
	t.Helper()
	limits, redis, own := boundless, redisAt(r), strings.Join(settings, "\n")
	if strings.Contains(own, "max_in_flight") {
		limits = strings.Replace(limits, "limits.concurrency.max_in_flight = 2000\n", "", 1)
	}
	if strings.Contains(own, "stock.redis.timeout") {
		redis = usualRedisAt(r)
	}
	g := gate(t, append(append([]string{redis, limits}, settings...), reserveRoutes)...)
	if units > 0 {
		ok(t, "stock", "set", "--config", g.file, "1001", strconv.Itoa(units))
	}
	return g
}

// again runs the gate of a configuration once more, on the same addresses where it names them.
func (g *running) again(t *testing.T) *running {
	t.Helper()
	return start(t, g.file, exec.Command(binary, "run", "--config", g.file))
}

// die kills the process at once.
func (g *running) die() {
	g.t.Helper()
	g.mortal = true
	if err := g.process.Process.Kill(); err != nil {
		g.t.Fatal(err)
	}
	<-g.ended
}

// buyer is one shopper with a connection of its own.
type buyer struct {
	user, key string // key may be empty
	sku       string // "" = 1001
	conn      net.Conn
	in        *bufio.Reader
	at        string
}

// buy asks once, at a gate. status 0 = there was no answer.
func (b *buyer) buy(front string) (status int, reason string) {
	if b.conn == nil || b.at != front {
		b.leave()
		c, err := net.DialTimeout("tcp", front, long)
		if err != nil {
			return 0, err.Error()
		}
		b.conn, b.in, b.at = c, bufio.NewReader(c), front
	}
	text := "POST /api/seckill/" + cmp.Or(b.sku, "1001") + "/order HTTP/1.1\r\nHost: shop\r\nCookie: uid=" + b.user +
		"\r\nContent-Length: 0\r\n"
	if b.key != "" {
		text += "Idempotency-Key: " + b.key + "\r\n"
	}
	_ = b.conn.SetDeadline(time.Now().Add(long))
	if _, err := io.WriteString(b.conn, text+"\r\n"); err != nil {
		b.leave()
		return 0, err.Error()
	}
	resp, err := http.ReadResponse(b.in, &http.Request{Method: "POST"})
	if err != nil {
		b.leave()
		return 0, err.Error()
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil || resp.Close {
		b.leave()
	}
	return resp.StatusCode, resp.Header.Get("X-Sluice-Reason")
}

func (b *buyer) leave() {
	if b.conn != nil {
		b.conn.Close()
		b.conn = nil
	}
}

func TestReserve_CrowdAtTwoInstancesBuysWhatThereIs(t *testing.T) {
	t.Parallel()
	crowdAtTwo(t, 5_000)
}

func TestReserve_CrowdOfFiftyThousandCostsThirtyScriptCalls(t *testing.T) {
	testkit.Nightly(t, "its bound is on what a crowd sends in real time")
	if calls, idle := crowdAtTwo(t, 50_000); calls > 30 {
		t.Errorf("Redis saw %d script calls, and %d of what idle instances call, too", calls, idle)
	}
}

// crowdAtTwo has so many users want 10 units, at two instances. It returns how many scripts Redis ran until the last
// answer, without those that instances run where no one comes, and how many of these.
func crowdAtTwo(t *testing.T, users int) (calls, idle int) {
	const connections, units = 200, 10
	r, shop := redistest.Start(t), book(t, nil)
	one := reserves(t, r, units, shop.setting())
	two := reserves(t, r, 0, shop.setting())
	ran := scriptsOf(t, r)
	time.Sleep(3 * time.Second) // in which each instance runs what it runs every second or two
	unasked := ran()
	heard := make([]atomic.Int64, 600)
	var all sync.WaitGroup
	for c := range connections {
		all.Go(func() {
			b := &buyer{}
			defer b.leave()
			front := []string{one.front, two.front}[c%2]
			for u := c; u < users; u += connections {
				b.user = strconv.Itoa(u)
				status, reason := b.buy(front)
				heard[status].Add(1)
				if status != 200 && reason != "sold_out" && reason != "undecided" {
					t.Errorf("user %d heard %d %s", u, status, reason)
				}
			}
		})
	}
	all.Wait()
	for script, n := range ran() {
		if before, ok := unasked[script]; ok {
			idle += n - before
		} else {
			calls += n
		}
	}
	soon(t, "all is settled", func() bool { return ledgerOf(t, r, "1001").held == 0 })
	if a := ledgerOf(t, r, "1001"); a != (account{units, 0, units}) || shop.booked() != units ||
		heard[200].Load() != int64(units) {
		t.Errorf("ledger %+v, %d orders at the shop, %d shoppers bought", a, shop.booked(), heard[200].Load())
	}
	shop.audit(t)
	if calls+idle >= 500 {
		t.Errorf("Redis saw %d script calls", calls+idle)
	}
	t.Logf("%d users, %d script calls until the last answer; %d of what idle instances call, too", users, calls, idle)
	return calls, idle
}

// scriptsOf counts the calls of each script from now on, by its hash.
func scriptsOf(t *testing.T, r *redistest.Server) (counted func() map[string]int) {
	t.Helper()
	c, err := net.Dial("tcp", r.Addr)
	if err == nil {
		_, err = io.WriteString(c, "MONITOR\r\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	var mu sync.Mutex
	calls := map[string]int{}
	go func() {
		for lines := bufio.NewScanner(c); lines.Scan(); {
			if _, after, ok := strings.Cut(lines.Text(), `"evalsha" "`); ok && len(after) > 40 {
				mu.Lock()
				calls[after[:40]]++
				mu.Unlock()
			}
		}
	}()
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(calls)
	}
}

// insist lets a shopper ask until it has an answer that is final, at any of the gates, with the same key each time.
// It reports whether it has an order.
func (b *buyer) insist(fronts func() []string, stop <-chan struct{}) bool {
	defer b.leave()
	for {
		all := fronts()
		status, reason := b.buy(all[rand.IntN(len(all))])
		switch {
		case status == 200:
			return true
		case reason == "released": // came to nothing: another attempt is another order
			b.key += "-again"
		case reason == "duplicate", reason == "key_reused":
			return false
		}
		select {
		case <-stop:
			return false
		case <-time.After(time.Duration(20+rand.IntN(200)) * time.Millisecond):
		}
	}
}

// misfortune is a shop that answers 5 % of its orders with 500 after it has booked them, and hangs on 1 %.
func misfortune(n int, w http.ResponseWriter, r *http.Request) bool {
	switch {
	case n%20 == 7:
		http.Error(w, "after commit", http.StatusInternalServerError)
		return true
	case n%100 == 13:
		select {
		case <-r.Context().Done():
		case <-time.After(long):
		}
		return true
	}
	return false
}

func TestReserve_EveryUnitIsSoldOnceThoughAnInstanceDiesAndTheShopFails(t *testing.T) {
	t.Parallel()
	const shoppers, units = 400, 200
	r, shop := redistest.Start(t), book(t, misfortune)
	impatient := `upstream.response_header_timeout = "500ms"
stock.reserve.reservation_ttl = "2s"
limits.concurrency.max_in_flight = 64
limits.concurrency.max_queue = 10000
limits.concurrency.queue_timeout = "5s"`
	addresses, front := fixed(t)
	one := reserves(t, r, units, shop.setting(), impatient)
	two := reserves(t, r, 0, shop.setting(), impatient, addresses)
	fronts := func() []string { return []string{one.front, front} }

	stop := make(chan struct{})
	var all sync.WaitGroup
	var bought atomic.Int64
	for u := range shoppers {
		all.Go(func() {
			b := &buyer{user: strconv.Itoa(u), key: fmt.Sprintf("k%d", u)}
			if b.insist(fronts, stop) {
				bought.Add(1)
			}
		})
	}
	soon(t, "a third is sold", func() bool { return ledgerOf(t, r, "1001").sold > units/3 })
	two.die()
	two.again(t)
	// What the instance that died had leased from a sweep is free again when that lease has ended: after a minute.
	inTime(t, 4*long, "all is sold and decided", func() bool {
		a := ledgerOf(t, r, "1001")
		return a.held == 0 &&
			a.sold == units
	})
	close(stop)
	all.Wait()
	if a := ledgerOf(t, r, "1001"); a != (account{units, 0, units}) || shop.booked() != units {
		t.Errorf("ledger %+v, %d orders at the shop", a, shop.booked())
	}
	if bought.Load() > int64(units) {
		t.Errorf("%d shoppers heard that they have an order", bought.Load())
	}
	shop.audit(t)
}
