package e2e

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/redisconn"
)

// wire stands between a client and a server, until it is cut.
type wire struct {
	addr string

	mu   sync.Mutex
	cut  bool
	open []net.Conn
}

// wireTo begins one that ends with the test.
func wireTo(t *testing.T, to string) *wire {
	t.Helper()
	w := &wire{}
	w.addr = redistest.Between(t, to, func(client, server *net.TCPConn) (there, back func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.cut {
			client.Close()
		}
		w.open = append(w.open, client, server)
		return nil, nil
	})
	return w
}

// set cuts it, or mends it.
func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for _, c := range w.open {
		if cut {
			c.Close()
		}
	}
	w.open = nil
}

// One instance is cut off together with the master, and sells on; the sentinels put another master into its place,
// which all other instances find. When the old one is a replica again, the instance that was cut off tells what was
// sold.
func TestPartition_MasterCutOffWithOneInstanceSellsNoUnitTwice(t *testing.T) {
	testkit.Nightly(t, "it waits for sentinels and for orders of a slow shop")
	t.Parallel()
	const units, shoppers = 600, 700
	const quick, slow = int64(25 * time.Millisecond), int64(250 * time.Millisecond)
	var takes atomic.Int64 // how long the shop takes for an order
	takes.Store(quick)
	w, shop := redistest.Sentinel(t), book(t, func(int, http.ResponseWriter, *http.Request) bool {
		time.Sleep(time.Duration(takes.Load())) // the shop's work
		return false
	})
	for _, s := range w.Servers {
		if err := s.Client.Do(t.Context(), "acl", "setuser", "gate", "on", ">open sesame", "~*", "&*",
			"+@all").Err(); err != nil {
			t.Fatal(err)
		}
	}
	stockAll(t, redisconn.Options{Topology: redisconn.Sentinel, Addresses: w.Addrs(), MasterName: w.Name}, 1, units)
	var far []string // the sentinels, as the instance knows them that is cut off
	var wires []*wire
	for _, s := range w.Addrs() {
		one := wireTo(t, s)
		wires, far = append(wires, one), append(far, one.addr)
	}
	limits := strings.Replace(boundless, "max_in_flight = 2000\n",
		"max_in_flight = 1\nlimits.concurrency.max_queue = 2000\nlimits.concurrency.queue_timeout = \"1s\"\n", 1)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("open sesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := func(sentinels []string) []string {
		return []string{
			"stock.source = \"redis\"\nstock.redis.addresses = " + quoted(sentinels...) + "\nstock.redis.master_name = " +
				strconv.Quote(w.Name) +
				"\nstock.redis.username = \"gate\"\nstock.redis.password_file = " + strconv.Quote(password),
			limits, shop.setting(), `stock.reserve.reservation_ttl = "2s"`, reserveRoutes,
		}
	}
	off, near := gate(t, settings(far)...), gate(t, settings(w.Addrs())...)
	_, end := shopping(shoppers, 30, 1, []string{off.front, near.front})
	soon(t, "a quarter is sold", func() bool { return shop.booked() > units/4 })

	takes.Store(slow) // there is something left to sell when the new master is found, however late that is
	old := w.Master()
	for _, one := range wires {
		one.set(true)
	}
	// Only who is cut off with it has a user there: replicas and sentinels are rejected.
	inside := redis.NewClient(&redis.Options{Addr: old.Addr, Username: "gate", Password: "open sesame"})
	defer inside.Close()
	for _, words := range [][]any{{"acl", "setuser", "default", "off"}, {"client", "kill", "user", "default"},
		{"client", "kill", "type", "replica"}} {
		if err := inside.Do(t.Context(), words...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	next := w.Successor(old)
	sold := func(c *redis.Client) int { n, _ := strconv.Atoi(fields(c, "1001")["sold"]); return n }
	closed := func() bool { f := fields(next.Client, "1001"); return f["doubt"] != "" || f["state"] == "frozen" }
	soon(t, "the other instance has found the new master", closed)
	takes.Store(quick)
	here := sold(inside)
	soon(t, "who is cut off sells on", func() bool { return sold(inside) > here+units/8 })
	if !closed() { // what the other instance sold before it found it is put back there meanwhile
		t.Errorf("the new master sells while the old one does: %v", fields(next.Client, "1001"))
	}

	if err := inside.Do(t.Context(), "acl", "setuser", "default", "on").Err(); err != nil {
		t.Fatal(err)
	}
	for _, one := range wires {
		one.set(false)
	}
	inTime(t, 2*long, "all is sold and decided on the new master", func() bool {
		f := fields(next.Client, "1001")
		return f["sold"] == strconv.Itoa(units) && f["held"] == "0"
	})
	end()
	if n := shop.booked(); n != units {
		t.Errorf("%d orders at the shop for %d units", n, units)
	}
	shop.audit(t)
	if t.Failed() {
		t.Log(off.log.String())
		t.Log(near.log.String())
	}
}
