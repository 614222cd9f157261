package e2e

import (
	"net"
	"testing"

	"sluice/internal/redistest"
)

// Stock is read from a real replica of a real master. With the replica promoted, and then away, the master is read, and
// no order notices.
func TestReplica_TakesTheReadingFromTheMaster(t *testing.T) {
	t.Parallel()
	master, shop := redistest.Start(t, "--repl-diskless-sync-delay", "0"), open(t, nil)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Start(t, "--replicaof", host, port)
	for _, sku := range []string{"1001", "1002", "1003"} {
		master.Client.Set(t.Context(), "seckill:stock:"+sku, 10, 0)
	}
	g := gate(t, redisAt(master), "stock.redis.replicas = "+quoted(replica.Addr),
		"stock.redis.max_staleness = \"30s\"", shop.setting(), boundless)
	read := func() float64 { return g.metric("sluice_redis_replica_read") }
	soon(t, "the replica is read", func() bool { return read() == 1 })
	before := master.Calls("get") + master.Calls("mget")
	g.order("1001").must(t, 200, "")
	if n := master.Calls("get") + master.Calls("mget") - before; n != 0 || replica.Calls("get") == 0 {
		t.Errorf("the master was read %d times", n)
	}
	master.Client.Set(t.Context(), "seckill:stock:1001", 0, 0)
	soon(t, "sold out is heard of by the replica", func() bool { return g.order("1001").reason == "sold_out" })

	replica.Client.Do(t.Context(), "replicaof", "no", "one")
	soon(t, "it is not read once it was promoted", func() bool { return read() == 0 })
	replica.Client.Set(t.Context(), "seckill:stock:1002", 0, 0)
	g.order("1002").must(t, 200, "")
	wants(t, g.readiness(), "is a master, and follows no other")
	master.Client.Set(t.Context(), "seckill:stock:1002", 0, 0)
	soon(t, "sold out is heard of by the master", func() bool { return g.order("1002").reason == "sold_out" })

	replica.Client.Do(t.Context(), "replicaof", host, port)
	soon(t, "it is read again", func() bool { return read() == 1 })
	replica.Kill()
	g.order("1003").must(t, 200, "")
	soon(t, "its loss is told", func() bool { return read() == 0 })
	if !g.ready() {
		t.Error("without its replica the gate is not ready")
	}
}
