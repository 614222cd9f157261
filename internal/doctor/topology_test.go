package doctor

import (
	"strings"
	"testing"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
)

func TestTopology_CheckRejectsOnAClusterKeysThatWouldBeApart(t *testing.T) {
	c := config.Default()
	c.Stock.Source, c.Stock.Redis.Topology = "redis", "cluster"
	c.Stock.Layout.Type, c.Stock.Layout.Key, c.Stock.Layout.UsersKey = "counter_users", "stock:$sku", "uids:$sku"
	if _, err := stores.ShopLayout(c); err == nil || !strings.Contains(err.Error(), `users_key = "uids:{$sku}"`) {
		t.Errorf("%v", err)
	}
	c.Stock.Redis.Topology = "single"
	if _, err := stores.ShopLayout(c); err != nil {
		t.Error(err)
	}
}

func TestTopology_OnlineCheckTellsWhatRedisIsAndWhatWouldLoseOrders(t *testing.T) {
	t.Parallel()
	w := redistest.Sentinel(t)
	c := storetest.Reserving(w.Servers[0].Addr)
	c.Stock.Redis.Addresses = w.Addrs()
	text, _ := tried(t, c)
	contains(t, text, "ok   redis     it is a master behind sentinels", "ok   replicas  the master has 2 replicas",
		"min-replicas-to-write 1")
	c.Stock.Redis.WaitReplicas = 3
	if text, failed := tried(t, c); !failed {
		t.Errorf("more replicas are waited for than there are: %s", text)
	}
	c = storetest.Reserving(w.Servers[1].Addr)
	if text, failed := tried(t, c); !failed || !strings.Contains(text, "is a replica of") {
		t.Errorf("a replica is taken for a master: %s", text)
	}
	cluster := redistest.Cluster(t, 3)
	c = storetest.Reserving(cluster.Addrs()...)
	c.Stock.Redis.WaitReplicas = 1
	text, _ = tried(t, c)
	contains(t, text, "ok   redis     it is a cluster, with 3 taking writes")
	for _, at := range cluster.Addrs() {
		contains(t, text, "ok   version   "+at+" answers as redis ", "FAIL replicas  "+at+" has 0 replicas, and ")
	}
}

func TestTopology_CheckTellsTheTopology(t *testing.T) {
	for topology, says := range map[string]string{
		"single": "one server", "sentinel": `the master "shop"`, "cluster": "a cluster", "auto": "says itself",
	} {
		c := storetest.Reserving("a:1")
		c.Stock.Redis.Topology = topology
		if topology == "sentinel" {
			c.Stock.Redis.MasterName = "shop"
		}
		contains(t, examined(c, (*Report).checkTopology), says)
	}
}
