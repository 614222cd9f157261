package stores

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/config"
	"sluice/stockgate"
	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

// ShopLayout compiles how the shop keeps its stock.
func ShopLayout(c *config.Config) (*layout.Layout, error) {
	o := c.Stock.Layout
	l, err := layout.New(layout.Options{
		Type: o.Type, Key: o.Key, TotalField: o.TotalField, SoldField: o.SoldField, LeftField: o.LeftField,
		StatusKey: o.StatusKey, StatusField: o.StatusField, StatusOpen: o.StatusOpen,
		StatusClosed: o.StatusClosed, UsersKey: o.UsersKey,
		SoldOutAt: int64(o.SoldOutAt), SoldOutFlag: o.SoldOutKey, Prefix: o.Prefix, Script: o.Script, Name: Name(c),
	})
	if err != nil {
		return nil, c.Errorf("stock.layout", "%v", err)
	}
	if c.Stock.Redis.Topology == redisconn.Cluster {
		if err := l.InOneSlot(redisconn.Tag); err != nil {
			return nil, c.Errorf("stock.layout", "%v", err)
		}
	}
	return l, nil
}

// silent is what the Redis client may log: it repeats for each failed attempt what the gate says once.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// OpenLink connects to the configured Redis.
func OpenLink(c *config.Config, log *slog.Logger) (*redisconn.Client, error) {
	o := RedisOptions(c)
	o.Log = log
	link, err := redisconn.New(o)
	if err != nil {
		return nil, c.Errorf("stock.redis", "%v", err)
	}
	return link, nil
}

// OpenShopStock connects to the configured Redis, in the shop's layout.
func OpenShopStock(c *config.Config, log *slog.Logger) (*stockgate.Redis, error) {
	return OpenShopStockBy(RedisOptions(c), c, log)
}

// OpenShopStockBy is OpenShopStock by other options.
func OpenShopStockBy(o redisconn.Options, c *config.Config, log *slog.Logger) (*stockgate.Redis, error) {
	l, err := ShopLayout(c)
	if err != nil {
		return nil, err
	}
	o.Log = log
	return stockgate.NewRedis(o, l)
}

// CheckFits rejects a cluster that was found just now, where the layout cannot be used. A Redis that is away is waited
// for: the same is found out then, and every answer is an error.
func CheckFits(c *config.Config, r *stockgate.Redis) error {
	if err := r.Fit(context.Background()); errors.Is(err, layout.ErrApart) {
		return c.Errorf("stock.layout", "%v", err)
	}
	return nil
}

// The circuit breaker of a server opens after so many errors within a second, and tries again after a second: one slow
// moment opens none, and a fail-over of some seconds costs few orders more.
const (
	breakerErrors = 20
	breakerOpen   = time.Second
)

// RedisOptions say how the configured Redis is reached.
func RedisOptions(c *config.Config) redisconn.Options {
	redis.SetLogger(silent{})
	r := c.Stock.Redis
	var secure *tls.Config
	if r.TLS {
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return redisconn.Options{
		Topology: r.Topology, MasterName: r.MasterName, Addresses: r.Addresses, Username: r.Username,
		Password: func() string { return string(r.PasswordNow()) }, DB: r.DB, TLS: secure,
		PoolSize: config.RedisConnections, ConnectTimeout: r.ConnectTimeout(), Timeout: r.Timeout,
		BreakerErrors: breakerErrors, BreakerPause: breakerOpen, Guard: claim(c, true),
	}
}

// WaitLonger is c for a caller that would rather wait for Redis than hear that it was slow: for a command, not for
// shoppers.
func WaitLonger(c *config.Config) *config.Config {
	p := *c
	p.Stock.Redis.Timeout = max(c.Stock.Redis.Timeout, commandWaits)
	return &p
}

// commandWaits is how long a command waits for one of Redis.
const commandWaits = 2 * time.Second
