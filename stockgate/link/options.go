package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options are the keys under [stock.redis]. All durations and counts must be positive.
type Options struct {
	Addresses      []string // exactly one: "host:port", or a path that begins with a slash
	Username       string
	Password       string
	DB             int
	TLS            *tls.Config   // nil = plain TCP
	PoolSize       int           // connections, opened ahead
	ConnectTimeout time.Duration // to open one
	Timeout        time.Duration // one round trip on an open connection; slower is an error
	BreakerErrors  int           // so many errors within 1 s, ...
	BreakerPause   time.Duration // ... and Redis is left alone for so long

	// OnConnect, if there is one, speaks first on every new connection; its error closes that.
	OnConnect func(context.Context, *redis.Conn) error

	// Identify, if there is one, names the server that a new connection has reached, before OnConnect; its error
	// closes the connection. A restarted server must have another name.
	Identify func(context.Context, *redis.Conn) (string, error)
}

func (o Options) check() error {
	if len(o.Addresses) != 1 {
		return fmt.Errorf("addresses: one single Redis is supported, not %d addresses", len(o.Addresses))
	}
	if o.PoolSize < 1 || o.ConnectTimeout <= 0 || o.Timeout <= 0 || o.BreakerErrors < 1 || o.BreakerPause <= 0 {
		return errors.New("pool_size, connect_timeout, timeout, breaker_errors, breaker_pause: all must be positive")
	}
	return nil
}

// client says how go-redis must behave to keep our promises: by default it repeats commands, ignores
// deadlines, and pins every caller for many seconds while Redis is away.
func (o Options) client() redis.Options {
	return redis.Options{
		Network:               network(o.Addresses[0]),
		Addr:                  o.Addresses[0],
		Username:              o.Username,
		Password:              o.Password,
		DB:                    o.DB,
		TLSConfig:             o.TLS,
		OnConnect:             o.OnConnect,
		MaxRetries:            -1, // a command that timed out may have run
		ContextTimeoutEnabled: true,
		DialTimeout:           o.ConnectTimeout,
		DialerRetries:         1,
		ReadTimeout:           o.Timeout,
		WriteTimeout:          o.Timeout,
		PoolTimeout:           20 * time.Millisecond,
		PoolSize:              o.PoolSize,
		MinIdleConns:          o.PoolSize - 1, // opening one in the rush is too late; one turn stays free for a call meanwhile
		PipelinePoolSize:      -1,             // pipelines too take the connections that are open already
		DisableIdentity:       true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled, // a handshake that plain Redis does not know
		},
	}
}

func network(address string) string {
	if strings.HasPrefix(address, "/") {
		return "unix"
	}
	return "tcp"
}
