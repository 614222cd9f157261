package driver

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"

	"sluice/stockgate/link"
)

// Each cell of the table is what happens when it is provoked.
func TestPromisesAreWhatHappens(t *testing.T) {
	t.Parallel()
	one := clustered(t)
	for _, p := range Promises() {
		t.Run(p.Driver, func(t *testing.T) {
			s := shopOf(p.Driver)
			cluster := func(t *testing.T, s shop) string { return cluster(t, s, one) }
			for _, c := range []struct {
				name, says string
				provoke    func(*testing.T, shop) string
			}{
				{"oversell", p.Oversell, oversell}, {"undersell", p.Undersell, undersell}, {"double buying", p.DoubleBuying, buyTwice},
				{"repeatable", p.Repeatable, comeAgain}, {"give-back twice", p.GiveBackTwice, giveBackTwice}, {"cluster", p.Cluster, cluster},
			} {
				t.Run(c.name, func(t *testing.T) {
					if found := c.provoke(t, s); found != c.says {
						t.Errorf("the table says %q, and what happens is %q", c.says, found)
					}
				})
			}
		})
	}
}

func TestDocumentationHasTheTableOfPromises(t *testing.T) {
	page, err := os.ReadFile("../../docs/drivers.md")
	check(t, err)
	for _, p := range Promises() {
		row := fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s | %s |\n", p.Driver, p.Oversell, p.Undersell, p.DoubleBuying, p.Repeatable, p.GiveBackTwice, p.Cluster)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/drivers.md lacks the row\n%s", row)
		}
	}
}

// crowd lets 200 shoppers come at once, by two gates and by the shop's own backend, and then sells what is left. It
// returns how many bought.
func crowd(t *testing.T, s shop, r *redistest.Server) int64 {
	t.Helper()
	gates := []*Desk{desk(t, r.Addr, s.layout), desk(t, r.Addr, s.layout)}
	var sold atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			user := fmt.Sprint(i)
			switch i % 4 {
			case 0, 1:
				reason, _ := take(gates[i%4], s.sku, user, "", 1)
				switch reason {
				case reject.Admitted:
					sold.Add(1)
				case reject.SoldOut, reject.Concurrency:
				default:
					t.Errorf("a shopper heard %s", reason)
				}
			default:
				if s.buy(t, r.Client, user) {
					sold.Add(1)
				}
			}
		})
	}
	all.Wait()
	for i := 200; s.left(t, r.Client) > 0; i++ { // those who lost by a transient number, or by others' speed, come again
		if s.buy(t, r.Client, fmt.Sprint(i)) {
			sold.Add(1)
		}
	}
	return sold.Load()
}

// oversell lets a crowd buy. A lock must also stand a holder who slept through its end.
func oversell(t *testing.T, s shop) string {
	r := redistest.Start(t)
	s.stock(t, r.Client, 50)
	if n := crowd(t, s, r); n != 50 {
		return fmt.Sprintf("%d of 50 were sold", n)
	}
	if s.layout.Driver != locked {
		return no
	}
	// The shop's backend reads under the lock and falls asleep; the lock ends; we sell; it wakes and writes what it knew.
	s.stock(t, r.Client, 2)
	check(t, r.Client.Set(background, lockKey, "sleeper", time.Minute).Err())
	knew := s.left(t, r.Client)
	check(t, r.Client.Del(background, lockKey).Err()) // as its time-out does
	d, sold := desk(t, r.Addr, s.layout), 0
	for _, user := range []string{"7", "8"} {
		if reason, _ := take(d, s.sku, user, "", 1); reason == reject.Admitted {
			sold++
		}
	}
	check(t, r.Client.Set(background, lockedStock, knew-1, 0).Err())
	sold++
	if sold > 2 && s.left(t, r.Client) > 0 {
		return afterLock
	}
	return no
}

// undersell loses the answer to what takes the only unit.
func undersell(t *testing.T, s shop) string {
	r := redistest.Start(t)
	s.stock(t, r.Client, 1)
	learnt(t, r)
	w := between(t, r.Addr)
	d := desk(t, w.addr, s.layout)
	w.lose(s.word)
	reason, _ := take(d, s.sku, "7", "", 1)
	if w.cut.Load() != nil {
		t.Fatal("no answer was lost")
	}
	left, unanswered := s.left(t, r.Client), d.counts.unsure.Load()
	switch {
	case reason == reject.StockError && left == 0 && unanswered == 1:
		return possible
	case reason == reject.Admitted && left == 0 && unanswered == 0:
		return no
	}
	return fmt.Sprintf("heard %s, %d left, %d counted", reason, left, unanswered)
}

// buyTwice lets one user order twice at once, by two gates.
func buyTwice(t *testing.T, s shop) string {
	r := redistest.Start(t)
	s.stock(t, r.Client, 50)
	var bought atomic.Int64
	var all sync.WaitGroup
	for i := range 2 {
		d := desk(t, r.Addr, s.layout)
		all.Go(func() {
			if reason, _ := take(d, s.sku, "7", fmt.Sprint("order-", i), 1); reason == reject.Admitted {
				bought.Add(1)
			}
		})
	}
	all.Wait()
	if bought.Load() == 2 {
		return possible
	}
	return no
}

// comeAgain repeats an order at another gate after it was placed.
func comeAgain(t *testing.T, s shop) string {
	r := redistest.Start(t)
	s.stock(t, r.Client, 50)
	first, second := desk(t, r.Addr, s.layout), desk(t, r.Addr, s.layout)
	reason, serial := take(first, s.sku, "7", "order-1", 1)
	if reason != reject.Admitted {
		t.Fatalf("the first heard %s", reason)
	}
	first.Settle([]byte(s.sku), serial, metrics.OrderConfirmed)
	again, _ := take(second, s.sku, "7", "order-1", 1)
	switch left := s.left(t, r.Client); {
	case again == reject.Duplicate && left == 49:
		return yes
	case again == reject.Admitted && left == 48:
		return no
	default:
		return fmt.Sprintf("heard %s, %d left", again, left)
	}
}

// giveBackTwice takes two orders and gives the first back twice.
func giveBackTwice(t *testing.T, s shop) string {
	found := givenTwice(t, s)
	if s.layout.OrdersKey == "" || found != harmless {
		return found
	}
	s.layout.OrdersKey = ""
	if givenTwice(t, s) == adds {
		return unlisted
	}
	return found
}

func givenTwice(t *testing.T, s shop) string {
	r := redistest.Start(t)
	s.stock(t, r.Client, 5)
	d := desk(t, r.Addr, s.layout)
	orders := []*order{
		{sku: s.sku, user: "7", serial: "a", quantity: 1, at: 1},
		{sku: s.sku, user: "8", serial: "b", quantity: 1, at: 2},
	}
	d.decision.take(background, orders)
	if orders[0].why != taken || orders[1].why != taken || s.left(t, r.Client) != 3 {
		t.Fatalf("%s and %s, %d left", orders[0].why, orders[1].why, s.left(t, r.Client))
	}
	for range 2 {
		d.decision.giveBack(background, orders[:1])
	}
	switch s.left(t, r.Client) {
	case 4:
		return harmless
	case 5:
		return adds
	}
	return fmt.Sprintf("%d left of 5, of which one is sold", s.left(t, r.Client))
}

// clustered runs a cluster of one.
func clustered(t *testing.T) *redistest.Server {
	t.Helper()
	r := redistest.Start(t, "--cluster-enabled", "yes")
	check(t, r.Client.Do(background, "cluster", "addslotsrange", 0, 16383).Err())
	eventually(t, "the cluster is well", func() bool {
		return strings.Contains(r.Client.ClusterInfo(background).Val(), "cluster_state:ok")
	})
	return r
}

// cluster tries the keys with and without tags, and takes a unit on a real one.
func cluster(t *testing.T, s shop, r *redistest.Server) string {
	check(t, r.Client.FlushAll(background).Err())
	s.stock(t, r.Client, 1)
	d := desk(t, r.Addr, s.layout, func(o *Options) { o.Cluster = true })
	if reason, _ := take(d, s.sku, "7", "order-1", 1); reason != reject.Admitted {
		return "heard " + reason.String()
	}
	if untagged(s.layout).Check(true) != nil {
		return withTag
	}
	return oneKey
}

// untagged is l without its tags.
func untagged(l Layout) Layout {
	bare := strings.NewReplacer("{", "", "}", "")
	for _, key := range []*string{&l.Key, &l.UsersKey, &l.OrdersKey, &l.ParentKey, &l.LockKey, &l.MarkKey} {
		*key = bare.Replace(*key)
	}
	return l
}

func TestSlotsAreThoseOfRedis(t *testing.T) {
	r := redistest.Start(t, "--cluster-enabled", "yes")
	for _, key := range []string{"", "a", "123456789", "{1001}:{88}:stock", "x{y}z", "x{}y", "{}{a}", "a{b", "}a{b}", "商品:{一}", "{{a}}"} {
		if want := r.Client.ClusterKeySlot(background, key).Val(); int64(link.Slot(key)) != want {
			t.Errorf("slot of %q is %d, and Redis says %d", key, link.Slot(key), want)
		}
	}
}

func TestKeysApartAreRefusedWithTheKeyThatWouldWork(t *testing.T) {
	for _, s := range shops() {
		err := untagged(s.layout).Check(true)
		if p, _ := promiseOf(s.layout.Driver); (err == nil) != (p.Cluster == oneKey) {
			t.Errorf("%s: %v", s.layout.Driver, err)
		} else if err != nil && !strings.Contains(err.Error(), "{$sku") {
			t.Errorf("%s: %v proposes nothing", s.layout.Driver, err)
		}
	}
	// An order must not choose the slot of its mark.
	l := Layout{Driver: hashInStock, Key: "h:{$sku}", MarkKey: "$serial:{$sku}"}
	if l.Check(true) == nil {
		t.Error("a mark that begins with what a client sends is let through")
	}
}
