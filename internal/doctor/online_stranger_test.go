package doctor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sluice/config"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
)

// selling is a configuration whose one route checks the shop's own counter.
func selling(addresses ...string) *config.Config {
	c := storetest.Reserving()
	c.Stock.Redis.Addresses = addresses
	c.Routes[0].Gate = "check"
	c.Stock.Layout.Key = "seckill:stock:$sku"
	return c
}

func TestOnline_OneRedisIsNamedOnceAndItsVersionOnce(t *testing.T) {
	server := redistest.Start(t)
	for _, c := range []*config.Config{storetest.Reserving(server.Addr), selling(server.Addr)} {
		text, _ := tried(t, c)
		if n := strings.Count(text, " redis     "); n != 1 {
			t.Errorf("%d lines are about redis:\n%s", n, text)
		}
		if n := strings.Count(text, "edis 7."); n > 1 {
			t.Errorf("the version is said %d times:\n%s", n, text)
		}
	}
}

func TestOnline_KeyThatExpiresIsToldBeforeItDoes(t *testing.T) {
	server := redistest.Start(t)
	if err := server.Client.Set(t.Context(), "seckill:stock:10", 3, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	text, failed := tried(t, selling(server.Addr), "10")
	if failed {
		t.Error("a warning fails the check")
	}
	contains(t, text, "warn layout    10: 3 left in seckill:stock:10, which expires in", "unknown_sku")
}

// Whichever master has the keys, what is wrong with them is said, and no master is taken for all of them.
func TestOnline_KeysOfAClusterAreLookedForOnAllItsMasters(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	c, client := selling(nodes.Addrs()...), nodes.Client()
	text, failed := tried(t, c, "10")
	if !failed {
		t.Error("nothing failed")
	}
	contains(t, text, "no key at all", "ok   redis     it is a cluster, with 3 taking writes")
	for _, sku := range []string{"1", "2", "3", "4", "5", "6"} {
		if err := client.HSet(t.Context(), "seckill:stock:"+sku, "total", 3).Err(); err != nil {
			t.Fatal(err)
		}
		if err := client.Set(t.Context(), "laravel_database_seckill:stock:9"+sku, 3, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	text, _ = tried(t, c, "1", "2", "3", "4", "5", "6")
	if n := strings.Count(text, `it is a hash with the fields "total"`); n != 6 {
		t.Errorf("%d of 6 are told of:\n%s", n, text)
	}
	text, _ = tried(t, c, "91", "92", "93", "94", "95", "96")
	if n := strings.Count(text, `write prefix = "laravel_database_"`); n != 6 {
		t.Errorf("%d of 6 are found:\n%s", n, text)
	}
}

// Whatever is found, other programs read one object and nothing beside it.
func TestOnline_JSONIsOneObjectWhateverIsFound(t *testing.T) {
	t.Parallel()
	w := redistest.Sentinel(t)
	nodes := redistest.Cluster(t, 3)
	lonely := redistest.Start(t)
	if err := lonely.Client.Do(t.Context(), "acl", "setuser", "default", "-info").Err(); err != nil {
		t.Fatal(err)
	}
	for _, s := range nodes.Masters {
		if err := s.Client.Do(t.Context(), "acl", "setuser", "default", "-info").Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, addresses := range [][]string{w.Addrs(), nodes.Addrs(), {lonely.Addr}} {
		c := storetest.Reserving(lonely.Addr)
		c.Stock.Redis.Addresses = addresses
		var out strings.Builder
		o := Report{}
		if err := o.Try(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := o.WriteJSON(&out); err != nil {
			t.Fatal(err)
		}
		var told any
		if err := json.Unmarshal([]byte(out.String()), &told); err != nil {
			t.Errorf("%v: %s", err, &out)
		}
	}
}
