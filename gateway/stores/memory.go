package stores

import (
	"log/slog"
	"time"

	"sluice/config"
	"sluice/internal/embedredis"
	"sluice/stockgate"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// MemoryShopStock is the shop's stock in a Redis of this process: a counter for each SKU, in the key that
// stock.layout.key is by default. What stock.layout says is of a shop that writes, and here none does.
func MemoryShopStock(in *embedredis.Server, c *config.Config, log *slog.Logger) (*stockgate.Redis, error) {
	plain := *c
	plain.Stock.Layout = config.Default().Stock.Layout
	return OpenShopStockBy(MemoryOptions(in, c), &plain, log)
}

// MemoryLedger is OpenLedger in a Redis of this process.
func MemoryLedger(in *embedredis.Server, c *config.Config, visitor bool, log *slog.Logger) (*ledger.Store, error) {
	alone := *c // what is lost with the process has no replica, no journal and no settler
	alone.Stock.Redis.WaitReplicas, alone.Server.StateDir, alone.Stock.Reserve.StreamKeepUnread = 0, "", false
	return openLedger(&alone, MemoryOptions(in, c), visitor, log)
}

// memoryTimeout only ends what hangs: the server is in this process.
const memoryTimeout = 5 * time.Second

// MemoryOptions say how a Redis of this process is reached.
func MemoryOptions(in *embedredis.Server, c *config.Config) redisconn.Options {
	o := RedisOptions(c)
	return redisconn.Options{
		Topology: redisconn.Single, Addresses: []string{"memory"}, Dialer: in.Dial, PoolSize: min(o.PoolSize, 8),
		ConnectTimeout: memoryTimeout, Timeout: memoryTimeout, BreakerErrors: redisconn.Unbroken, BreakerPause: o.BreakerPause,
	}
}
