package script

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

// denied lets a Reserver be a user who may do everything but some.
func denied(t *testing.T, r *redistest.Server, rules string) func(*Options) {
	t.Helper()
	words := []any{"acl", "setuser", "app", "reset", "on", ">word", "+@all"}
	for _, rule := range strings.Fields(rules) {
		words = append(words, rule)
	}
	check(t, r.Client.Do(background, words...).Err())
	return func(o *Options) { o.Redis.Username, o.Redis.Password = "app", func() string { return "word" } }
}

// A user of Redis who may run only half of a decision must not take units that no order gets.
func TestPresets_ScriptThatMayNotBeFinishedTakesNothing(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for _, c := range []struct {
		preset string
		deny   []string
	}{
		{"hash_ordered", []string{"~* -hincrby"}},
		{"hash_bought", []string{"~* -hincrby", "~* -lpush", "~goods:*"}},
		{"counter_codes", []string{"~* -decrby"}},
		{"counter_users", []string{"~* -decr", "~* -sadd", "~*:stock %R~*:uids"}},
		{"hash_instock", []string{"~* -hincrby", "~* -set", "~iphone:*", "~iphone:* %R~mark:*"}},
		{"lock", []string{"~* -decrby"}},
		{"list_users", []string{"~* -lpop", "~* -sadd", "~units:* %R~bought:*"}},
		{"variants", []string{"~* -decrby", "~stock:{1001}:* %R~stock:{1001}"}},
	} {
		for _, rules := range c.deny {
			t.Run(c.preset+" "+rules, func(t *testing.T) {
				s, r := shopOf(c.preset), redistest.Start(t)
				s.stock(t, r.Client, 5)
				d := reserver(t, r.Addr, s.def, denied(t, r, rules))
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
				if n := d.counts.sum(unitsUnanswered); n != 0 {
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
func TestPresets_WhatRedisRejectsForReasonsOfItsOwnIsGivenBackLater(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	t.Parallel()
	for _, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			t.Parallel()
			r := redistest.Start(t)
			s.stock(t, r.Client, 5)
			d := reserver(t, r.Addr, s.def)
			reason, serial := take(d, s.sku, "7", "", 1)
			if reason != reject.Admitted {
				t.Fatalf("heard %s", reason)
			}
			check(t, r.Client.ConfigSet(background, "min-replicas-to-write", "1").Err()) // NOREPLICAS
			if reason, _ := take(d, s.sku, "8", "", 1); reason != reject.StockError {
				t.Errorf("meanwhile: %s", reason)
			}
			if n := d.counts.ended(failed); n != 0 {
				t.Error("the key is blamed for it")
			}
			before := noReplicas(r)
			d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
			testkit.Eventually(t, "giving back is rejected", func() bool { return noReplicas(r) > before })
			check(t, r.Client.ConfigSet(background, "min-replicas-to-write", "0").Err())
			testkit.Eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 5 })
			if lost, unsure := d.counts.sum(unitsLost), d.counts.sum(unitsUnanswered); lost != 0 || unsure != 0 {
				t.Errorf("%d lost, %d unanswered", lost, unsure)
			}
		})
	}
}

// noReplicas is how often Redis has said NOREPLICAS.
func noReplicas(r *redistest.Server) int {
	_, after, _ := strings.Cut(r.Client.Info(background, "errorstats").Val(), "errorstat_NOREPLICAS:count=")
	text, _, _ := strings.Cut(after, "\r\n")
	n, _ := strconv.Atoi(text)
	return n
}

// The rights that docs/redis.md names are enough to take, to look, and to give back.
func TestPresets_RightsOfTheDocumentationAreEnough(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	for preset, rights := range map[string]string{
		"hash_ordered": "+hget +hmget +hincrby", "hash_bought": "+hget +hmget +hincrby +lpush +lrem",
		"hash_instock":  "+hget +hincrby +get +set +del",
		"counter_codes": "+get +incrby +decrby", "variants": "+get +incrby +decrby", "lock": "+exists +get +incrby +decrby",
		"counter_users": "+sismember +get +sadd +decr +srem +incr",
		"list_users":    "+sismember +llen +exists +sadd +lpop +srem +rpush",
	} {
		s, r := shopOf(preset), redistest.Start(t)
		s.stock(t, r.Client, 2)
		d := reserver(t, r.Addr, s.def, denied(t, r, "~* -@all +hello +auth +ping +select +evalsha +eval "+rights))
		reason, serial := take(d, s.sku, "7", "", 1)
		if reason != reject.Admitted {
			t.Errorf("%s: %s", preset, reason)
		}
		d.Settle([]byte(s.sku), serial, metrics.OrderRejected)
		testkit.Eventually(t, preset+" gives back", func() bool { return s.left(t, r.Client) == 2 })
		for i, want := range []reject.Reason{reject.Admitted, reject.Admitted, reject.SoldOut} {
			if reason, _ := take(d, s.sku, strconv.Itoa(i), "", 1); reason != want {
				t.Errorf("%s, order %d: %s", preset, i, reason)
			}
		}
	}
}

// A Redis that rejects the user, since the password is another one, has decided nothing: no SKU is unknown or sold
// out for that, and no unit is taken or given back.
func TestPresets_RedisThatRejectsTheUserDecidesNothing(t *testing.T) {
	testkit.Nightly(t, "scripts of shops are tested in a few tests by day")
	t.Parallel()
	for _, s := range shops() {
		t.Run(s.def.Preset, func(t *testing.T) {
			t.Parallel()
			r := redistest.Start(t)
			s.stock(t, r.Client, 5)
			d := reserver(t, r.Addr, s.def, denied(t, r, "~*"))
			reason, serial := take(d, s.sku, "7", "", 1)
			if reason != reject.Admitted {
				t.Fatalf("heard %s", reason)
			}
			check(t, r.Client.Do(background, "acl", "setuser", "app", "resetpass", ">another").Err())
			check(t, r.Client.Do(background, "client", "kill", "user", "app").Err())
			testkit.Eventually(t, "the end of the old connections is noticed", func() bool {
				unsent := d.counts.ended(notSent)
				if reason, _ := take(d, s.sku, "7", "", 1); reason != reject.StockError {
					t.Fatalf("heard %s", reason)
				}
				return d.counts.ended(notSent) > unsent
			})
			unanswered := d.counts.sum(unitsUnanswered)
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
			testkit.Eventually(t, "the unit is back", func() bool { return s.left(t, r.Client) == 5 })
			if lost, more := d.counts.sum(unitsLost), d.counts.sum(unitsUnanswered)-unanswered; lost != 0 || more != 0 {
				t.Errorf("%d lost, %d more unanswered", lost, more)
			}
		})
	}
}
