package stores

import (
	"log/slog"
	"os"
	"strings"

	"sluice/config"
	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/ledger/redisstore"
)

// KeepReleased is how long a released serial is remembered: longer than a sale, and than any message is late.
const KeepReleased = protocol.KeepReleased

// OpenLedger connects to the configured Redis, for our own keys.
func OpenLedger(c *config.Config, visitor bool, log *slog.Logger) (*redisstore.Store, error) {
	way := RedisOptions(c)
	if visitor {
		way.Log = slog.New(slog.DiscardHandler)
	}
	state := c.Server.StateDir
	if c.Stock.Reserve.Apart != "" {
		state = "" // what is sold there is not kept
	}
	r, err := redisstore.New(redisstore.Options{
		Options: way, Prefix: c.Stock.Reserve.Apart, Events: c.Stock.Reserve.StreamMaxEvents,
		Acknowledged: c.Stock.Reserve.StreamKeepUnread,
		Replicas:     c.Stock.Redis.WaitReplicas, Visitor: visitor, Instance: InstanceName(), StateDir: state, Log: log,
	})
	if err != nil {
		return nil, c.Errorf("stock.redis", "%v", err)
	}
	return r, nil
}

// InstanceName is what of this host's name can begin the name of an instance, which is unique anyway.
func InstanceName() string {
	name, _ := os.Hostname()
	if len(name) > 64 || !protocol.ValidSerial([]byte(name)) || strings.Contains(name, "|") {
		return ""
	}
	return name
}

// NewLedgers is store as the API wants it. reserver may be nil, and return nil as long as there is none.
func NewLedgers(c *config.Config, store protocol.Store, reserver func() *ledger.Reserver) *Ledgers {
	if reserver == nil {
		reserver = func() *ledger.Reserver { return nil }
	}
	return &Ledgers{store: store, perUser: int64(c.Stock.Reserve.MaxPerUser), reserver: reserver}
}
