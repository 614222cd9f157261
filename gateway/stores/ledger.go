package stores

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"sluice/config"
	"sluice/stockgate/ledger"
	"sluice/stockgate/redisconn"
)

// OpenLedger connects to the configured Redis, for our own keys.
func OpenLedger(c *config.Config, visitor bool, log *slog.Logger) (*ledger.Store, error) {
	return openLedger(c, RedisOptions(c), visitor, log)
}

const (
	// streamEvents is about how many changes of a SKU its stream keeps for readers.
	streamEvents = 100_000

	// handOutAfter is longer than the last writes take that a Redis usually loses, and less than any queue.deliver_within.
	handOutAfter = 3 * time.Second
)

func openLedger(c *config.Config, way redisconn.Options, visitor bool, log *slog.Logger) (*ledger.Store, error) {
	way.Guard = claim(c, visitor)
	if visitor {
		way.Log = slog.New(slog.DiscardHandler)
	}
	o := ledger.StoreOptions{
		Options: way, Name: Name(c), Events: streamEvents,
		Acknowledged: c.KeepsUnread(),
		Replicas:     c.Stock.Redis.WaitReplicas, Visitor: visitor, Instance: InstanceName(),
		StateDir: c.Server.StateDir, Log: log,
	}
	if c.Stock.Source != "memory" { // which loses nothing but with the process
		o.HandOutAfter = handOutAfter
	}
	r, err := ledger.NewStore(o)
	if errors.Is(err, ledger.ErrStateDir) {
		return nil, c.Errorf("server.state_dir", "%v; the user that runs Sluice must own the folder and all in it, and "+
			"its disk must have room", err)
	}
	if err != nil {
		return nil, c.Errorf("stock.redis", "%v", err)
	}
	return r, nil
}

// Name is the name of c's shop in Redis. In a Redis of this process there is no other shop.
func Name(c *config.Config) redisconn.Name {
	if c.Name == "" && c.Stock.Source == "memory" {
		return "memory"
	}
	return redisconn.Name(c.Name)
}

// claim has nothing asked in Redis while the name of c's shop is another's; nil = c has no name. The ledger of a
// gateway claims the name; what only looks is rejected as well.
func claim(c *config.Config, looks bool) *redisconn.Guard {
	if c.Name == "" {
		return nil
	}
	return redisconn.Claim{Name: Name(c), Secret: []byte(c.Stock.Reserve.Secret), Looks: looks}.Guard()
}

// CheckName rejects a name that is another shop's. A Redis that is away is waited for: nothing is asked there before it
// is known whose the name is.
func CheckName(c *config.Config) error {
	way := RedisOptions(c)
	way.PoolSize, way.Log = 1, slog.New(slog.DiscardHandler)
	link, err := redisconn.New(way)
	if err != nil {
		return c.Errorf("stock.redis", "%v", err)
	}
	defer link.Close()
	ping := func(ctx context.Context, r redisconn.Commands) error { return r.Ping(ctx).Err() }
	err = link.Do(context.Background(), ping, nil)
	if errors.Is(err, redisconn.ErrClaimed) {
		return c.Errorf("name", "%v", err)
	}
	return nil
}

// InstanceName is what of this host's name can begin the name of an instance, which is unique anyway.
func InstanceName() string {
	name, _ := os.Hostname()
	if len(name) > 64 || !ledger.ValidSerial([]byte(name)) || strings.Contains(name, "|") {
		return ""
	}
	return name
}

// NewLedgers is store as the API wants it. reserver may be nil, and return nil as long as there is none.
func NewLedgers(c *config.Config, store *ledger.Store, reserver func() *ledger.Reserver) *Ledgers {
	if reserver == nil {
		reserver = func() *ledger.Reserver { return nil }
	}
	return &Ledgers{store: store, config: c, reserver: reserver}
}
