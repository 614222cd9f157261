package stockgate

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

func clustered(t *testing.T, nodes *redistest.Nodes, o layout.Options) *Redis {
	t.Helper()
	l, err := layout.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRedis(RedisOptions{
		Topology: redisconn.Auto, Addresses: nodes.Addrs(), PoolSize: 2,
		ConnectTimeout: 3 * time.Second, Timeout: 3 * time.Second,
		BreakerErrors: 5, BreakerPause: 50 * time.Millisecond,
	}, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestCluster_StockIsReadFromAllOverAClusterAndOnlyADeadMastersIsUnknown(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	script := "local left = redis.call('get', KEYS[1]) return left and tonumber(left)"
	for name, o := range map[string]layout.Options{
		"hash":   {Type: layout.HashLeft, Key: "h:{$sku}", LeftField: "left"},
		"script": {Type: layout.Script, Key: "c:$sku", Script: script},
		"users":  {Type: layout.CounterUsers, Key: "{$sku}:stock", UsersKey: "{$sku}:uids"},
	} {
		t.Run(name, func(t *testing.T) {
			client, r := nodes.Client(), clustered(t, nodes, o)
			l, _ := layout.New(o)
			var skus []string
			for i := range 60 {
				sku := strconv.Itoa(1001 + i)
				skus = append(skus, sku)
				if o.Type == layout.Script {
					if err := client.Set(t.Context(), l.Key(sku), i+1, 0).Err(); err != nil {
						t.Fatal(err)
					}
				} else if err := r.Set(t.Context(), sku, int64(i+1)); err != nil {
					t.Fatal(err)
				}
			}
			out := make([]layout.Reading, len(skus)+1)
			if err := r.Read(t.Context(), append(skus, "none"), out); err != nil {
				t.Fatal(err)
			}
			for i := range skus {
				if out[i].Left != int64(i+1) || out[i].Fault != nil {
					t.Fatalf("%s: %+v", skus[i], out[i])
				}
			}
			if out[len(skus)].Exists {
				t.Error("a SKU without a key exists")
			}
			if all, err := r.List(t.Context(), 100); err != nil || len(all) != len(skus) {
				t.Errorf("%d SKUs are listed: %v", len(all), err)
			}
		})
	}
	o := layout.Options{Type: layout.HashLeft, Key: "h:{$sku}", LeftField: "left"}
	r := clustered(t, nodes, o)
	skus := []string{}
	for i := range 60 {
		skus = append(skus, strconv.Itoa(1001+i))
	}
	out := make([]layout.Reading, len(skus))
	if err := r.Read(t.Context(), skus, out); err != nil {
		t.Fatal(err)
	}
	nodes.Masters[1].Kill()
	if err := r.Read(t.Context(), skus, out); err != nil {
		t.Fatalf("nothing was learnt: %v", err)
	}
	for i, sku := range skus {
		dead := redistest.Slot(redisconn.Tag(sku))*3/redistest.SlotCount == 1
		if dead != (out[i].Fault != nil) || !dead && out[i].Left != int64(i+1) {
			t.Errorf("%s, on the dead master is %t: %+v", sku, dead, out[i])
		}
	}
	var dead []string
	for i, sku := range skus {
		if out[i].Fault != nil {
			dead = append(dead, sku)
		}
	}
	if err := r.Read(t.Context(), dead, out); err != nil { // the gate would take all of Redis for lost
		t.Errorf("all that is asked for is on the dead master: %v", err)
	}
	for i, sku := range dead {
		if out[i].Fault == nil {
			t.Errorf("%s of a dead master: %+v", sku, out[i])
		}
	}
	for range 20 {
		if err := r.Ping(t.Context()); err != nil {
			t.Fatalf("two of three masters are there, but: %v", err)
		}
	}
	nodes.Masters[0].Kill()
	nodes.Masters[2].Kill()
	if err := r.Read(t.Context(), dead, out); err == nil {
		t.Error("no master is there, and Redis is not lost")
	}
}

func TestCluster_LayoutWhoseKeysAreApartIsRejectedOnAClusterAlone(t *testing.T) {
	t.Parallel()
	o := layout.Options{Type: layout.CounterUsers, Key: "stock:$sku", UsersKey: "uids:$sku"}
	r := clustered(t, redistest.Cluster(t, 2), o)
	out := make([]layout.Reading, 1)
	for what, err := range map[string]error{
		"read": r.Read(t.Context(), []string{"1001"}, out), "set": r.Set(t.Context(), "1001", 1), "fit": r.Fit(t.Context()),
		"ping": r.Ping(t.Context()), "bought": r.Bought(t.Context(), []Buyer{{SKU: "1001", User: []byte("7")}}),
	} {
		if !errors.Is(err, layout.ErrApart) {
			t.Errorf("%s: %v", what, err)
		}
	}
	single := clustered(t, &redistest.Nodes{Masters: []*redistest.Server{redistest.Start(t)}}, o)
	if err := single.Set(t.Context(), "1001", 1); err != nil {
		t.Error(err)
	}
}

// By cluster-require-full-coverage yes, Redis' own default, no master answers about any key while one of them is dead,
// though each answers PING: all of Redis is lost then.
func TestCluster_MastersThatServeNoKeyAreALostRedis(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	nodes.SetTimeout(500 * time.Millisecond)
	cover := func(all string) {
		for _, m := range []*redistest.Server{nodes.Masters[0], nodes.Masters[2]} {
			if err := m.Client.ConfigSet(t.Context(), "cluster-require-full-coverage", all).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	cover("yes")
	r := clustered(t, nodes, layout.Options{Type: layout.Counter, Key: "seckill:$sku"})
	skus := []string{"1001", "1002", "1003", "1004", "1005", "1006"}
	out := make([]layout.Reading, len(skus))
	lost := func() bool { return r.Read(t.Context(), skus, out) != nil && r.Ping(t.Context()) != nil }
	if lost() {
		t.Fatal("a cluster that is well is lost")
	}
	nodes.Masters[1].Kill()
	testkit.Eventually(t, "Redis is lost", lost)
	cover("no")
	testkit.Eventually(t, "the living masters serve", func() bool { return !lost() && r.Ping(t.Context()) == nil })
}
