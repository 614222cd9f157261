package stores

import (
	"log/slog"
	"os"
	"strings"

	"sluice/config"
	"sluice/stockgate/ledger"
	"sluice/stockgate/ledger/protocol"
	"sluice/stockgate/ledger/redisstore"
	"sluice/stockgate/namespace"
	"sluice/stockgate/redisconn"
)

// KeepReleased is how long a released serial is remembered: longer than a sale, and than any message is late.
const KeepReleased = protocol.KeepReleased

// OpenLedger connects to the configured Redis, for our own keys.
func OpenLedger(c *config.Config, visitor bool, log *slog.Logger) (*redisstore.Store, error) {
	return openLedger(c, RedisOptions(c), visitor, log)
}

func openLedger(c *config.Config, way redisconn.Options, visitor bool, log *slog.Logger) (*redisstore.Store, error) {
	if visitor {
		way.Log = slog.New(slog.DiscardHandler)
	}
	r, err := redisstore.New(redisstore.Options{
		Options: way, Name: Name(c), Secret: []byte(c.Stock.Reserve.Secret), Events: c.Stock.Reserve.StreamMaxEvents,
		Acknowledged: c.Stock.Reserve.StreamKeepUnread,
		Replicas:     c.Stock.Redis.WaitReplicas, Visitor: visitor, Instance: InstanceName(),
		StateDir: c.Server.StateDir, Log: log,
	})
	if err != nil {
		return nil, c.Errorf("stock.redis", "%v", err)
	}
	return r, nil
}

// Name is the name of c's shop in Redis. In a Redis of this process there is no other shop.
func Name(c *config.Config) namespace.Name {
	if c.Name == "" && c.Stock.Source == "memory" {
		return "memory"
	}
	return namespace.Name(c.Name)
}

// NewClaim finds out whether the name of c's shop is its own. It claims nothing.
func NewClaim(c *config.Config, link *redisconn.Client) *namespace.Claim {
	return &namespace.Claim{Name: Name(c), Link: link, Secret: []byte(c.Stock.Reserve.Secret), Looks: true}
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
