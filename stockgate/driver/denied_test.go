package driver

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// denied lets a desk be a user who may do everything but some.
func denied(t *testing.T, r *redistest.Server, rules string) func(*Options) {
	t.Helper()
	words := []any{"acl", "setuser", "app", "reset", "on", ">word", "+@all"}
	for _, rule := range strings.Fields(rules) {
		words = append(words, rule)
	}
	check(t, r.Client.Do(background, words...).Err())
	return func(o *Options) { o.Link.Username, o.Link.Password = "app", func() string { return "word" } }
}

// A user of Redis who may run only half of a decision must not sell the stock away, order by order, to nobody.
func TestADecisionThatMayNotBeFinishedTakesNothing(t *testing.T) {
	for _, c := range []struct {
		driver string
		deny   []string
	}{
		{hashOrdered, []string{"~* -hincrby"}},
		{hashBought, []string{"~* -hincrby", "~* -lpush", "~goods:*"}},
		{counterCodes, []string{"~* -decrby"}},
		{counterUsers, []string{"~* -decr", "~* -sadd", "~*:stock %R~*:uids"}},
		{hashInStock, []string{"~* -hincrby", "~* -set", "~iphone:*"}},
		{hashInStockOnce, []string{"~* -hincrby", "~* -set", "~iphone:* %R~mark:*"}},
		{watched, []string{"~* -decrby"}},
		{locked, []string{"~* -decrby", "~* -incr", "~* -set"}},
		{listUsers, []string{"~* -lpop", "~* -sadd", "~units:* %R~bought:*"}},
		{variants, []string{"~* -decrby", "~stock:{1001}:* %R~stock:{1001}"}},
	} {
		for _, rules := range c.deny {
			t.Run(c.driver+" "+rules, func(t *testing.T) {
				s, r := shopOf(c.driver), redistest.Start(t)
				s.stock(t, r.Client, 5)
				d := desk(t, r.Addr, s.layout, denied(t, r, rules))
				for range 3 {
					if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.StockError {
						t.Errorf("heard %s", reason)
					}
				}
				if left := s.left(t, r.Client); left != 5 {
					t.Errorf("%d left of 5", left)
				}
				if n := r.Client.LLen(background, "order_list:{1001}").Val(); n != 0 {
					t.Errorf("%d orders are listed", n)
				}
				if n := d.counts.unsure.Load(); n != 0 {
					t.Errorf("%d units are counted as unanswered", n)
				}
				denied(t, r, "~*")
				if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.Admitted {
					t.Errorf("with all rights: %s", reason)
				}
			})
		}
	}
}

// A Redis that takes no writes for a while (memory, disk, a fail-over) has not got the units: they wait.
func TestWhatRedisRefusesForReasonsOfItsOwnIsGivenBackLater(t *testing.T) {
	t.Parallel()
	for _, s := range shops() {
		t.Run(s.layout.Driver, func(t *testing.T) {
			t.Parallel()
			r := redistest.Start(t)
			s.stock(t, r.Client, 5)
			d := desk(t, r.Addr, s.layout)
			reason, serial := take(d, s.sku, "7", "", 1)
			if reason != reject.Admitted {
				t.Fatalf("heard %s", reason)
			}
			check(t, r.Client.ConfigSet(background, "min-replicas-to-write", "1").Err()) // NOREPLICAS
			if reason, _ := take(d, s.sku, "8", "", 1); reason != reject.StockError {
				t.Errorf("meanwhile: %s", reason)
			}
			if n := d.counts.orders[faulty].Load(); n != 0 {
				t.Error("the key is blamed for it")
			}
			before := refusedBy(r)
			d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
			eventually(t, "giving back is refused", func() bool { return refusedBy(r) > before })
			check(t, r.Client.ConfigSet(background, "min-replicas-to-write", "0").Err())
			eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 5 })
			if lost, unsure := d.counts.lost.Load(), d.counts.unsure.Load(); lost != 0 || unsure != 0 {
				t.Errorf("%d lost, %d unanswered", lost, unsure)
			}
		})
	}
}

// refusedBy is how often Redis has said NOREPLICAS.
func refusedBy(r *redistest.Server) int {
	_, after, _ := strings.Cut(r.Client.Info(background, "errorstats").Val(), "errorstat_NOREPLICAS:count=")
	text, _, _ := strings.Cut(after, "\r\n")
	n, _ := strconv.Atoi(text)
	return n
}

// The rights that docs/redis.md names are enough to take, to look, and to give back.
func TestTheRightsOfTheDocumentationAreEnough(t *testing.T) {
	const hashes, listed = "+hget +hmget +hincrby ", "+lpush +lrem "
	for driver, rights := range map[string]string{
		hashOrdered: hashes, hashBought: hashes + listed, hashInStock: hashes + "+set +get +exists", hashInStockOnce: hashes + "+set +get +exists",
		counterCodes: "+exists +get +incrby +decrby", variants: "+exists +get +incrby +decrby",
		watched:      "+exists +get +incrby +decrby +watch +unwatch +multi +exec",
		locked:       "+exists +get +incrby +decrby +set +incr +del",
		counterUsers: "+exists +get +incrby +decrby +sismember +sadd +srem +incr +decr",
		listUsers:    "+exists +sismember +sadd +srem +llen +lpop +rpush",
	} {
		s, r := shopOf(driver), redistest.Start(t)
		s.stock(t, r.Client, 2)
		d := desk(t, r.Addr, s.layout, denied(t, r, "~* -@all +hello +auth +ping +select +evalsha +eval "+rights))
		reason, serial := take(d, s.sku, "7", "", 1)
		if reason != reject.Admitted {
			t.Errorf("%s: %s", driver, reason)
		}
		d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
		eventually(t, driver+" gives back", func() bool { return s.left(t, r.Client) == 2 })
		for i, want := range []reject.Reason{reject.Admitted, reject.Admitted, reject.SoldOut} {
			if reason, _ := take(d, s.sku, strconv.Itoa(i), "", 1); reason != want {
				t.Errorf("%s, order %d: %s", driver, i, reason)
			}
		}
	}
}

// A Redis that lets nobody in any more, since its password is another one, has decided nothing: no SKU is unknown or sold
// out for that, and no unit is taken or given back.
func TestRedisThatLetsNobodyInDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, s := range shops() {
		t.Run(s.layout.Driver, func(t *testing.T) {
			t.Parallel()
			r := redistest.Start(t)
			s.stock(t, r.Client, 5)
			d := desk(t, r.Addr, s.layout, denied(t, r, "~*"))
			reason, serial := take(d, s.sku, "7", "", 1)
			if reason != reject.Admitted {
				t.Fatalf("heard %s", reason)
			}
			check(t, r.Client.Do(background, "acl", "setuser", "app", "resetpass", ">another").Err())
			check(t, r.Client.Do(background, "client", "kill", "user", "app").Err())
			for i := range 5 {
				if reason, _ := take(d, s.sku, strconv.Itoa(i), "", 1); reason != reject.StockError {
					t.Errorf("heard %s", reason)
				}
			}
			if left := s.left(t, r.Client); left != 4 {
				t.Errorf("%d left of 4", left)
			}
			d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
			time.Sleep(50 * time.Millisecond) // giving back is tried
			denied(t, r, "~*")
			eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 5 })
			if lost, unsure := d.counts.lost.Load(), d.counts.unsure.Load(); lost != 0 || unsure != 0 {
				t.Errorf("%d lost, %d unanswered", lost, unsure)
			}
		})
	}
}
