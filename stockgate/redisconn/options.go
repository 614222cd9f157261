package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// What a Redis can be.
const (
	Single   = "single"
	Sentinel = "sentinel"
	Cluster  = "cluster"
	Auto     = "auto" // what the first of the addresses that answers says
)

// Options are the keys under [stock.redis]. All durations and counts must be positive.
type Options struct {
	Topology       string        // one of the above; "" = Single
	Addresses      []string      // "host:port": the server, the sentinels, some of the cluster; or one "/path" or "unix:/path"
	MasterName     string        // Sentinel: by which they know the master. With Auto it means Sentinel
	Username       string        // also of the sentinels, where these know that user
	Password       func() string // asked for every new connection; nil = none
	DB             int           // 0 in a cluster
	TLS            *tls.Config   // nil = plain TCP; without a ServerName each certificate must be of its address
	PoolSize       int           // connections to each server, opened ahead
	ConnectTimeout time.Duration // to open one
	Timeout        time.Duration // one round trip on an open connection; slower is an error
	BreakerErrors  int           // so many errors of one server within 1 s; Unbroken = no breaker, ...
	BreakerPause   time.Duration // ... and it is left alone for so long
	Log            *slog.Logger  // what Redis is found to be, and how it changes; nil = the changes, to slog.Default()

	// OnServer, if there is one, speaks first on the first connection to each server, and where Identify does not name
	// that on every one; its error closes the connection.
	OnServer func(context.Context, redis.Cmdable) error

	// Identify, if there is one, names the server that a new connection has reached, before OnServer; its error
	// closes the connection. A restarted server must have another name.
	Identify func(context.Context, redis.Cmdable) (string, error)

	Guard *Guard // nil = every call is sent

	// Moved, if there is one, is told when another server than before is reached at an address, or by the sentinels, and
	// when slots of a cluster have another master. It must not block.
	Moved func()

	// Dialer, if there is one, opens every connection; nil = TCP, or the socket of an address that is a path.
	Dialer func(ctx context.Context, network, address string) (net.Conn, error)

	through func(address string) string // where tests have a proxy for an address; nil = nowhere
	opened  *atomic.Int64               // how many connections were opened
}

// Unbroken is so many errors that no breaker opens: for callers who would rather wait than fail at once.
const Unbroken = math.MaxInt32

func (o *Options) check() error {
	if o.Topology == "" {
		o.Topology = Single
	}
	switch n := len(o.Addresses); {
	case n == 0:
		return errors.New("addresses: none")
	case o.Topology == Single && n > 1:
		return tooMany(n)
	case onSocket(o.Addresses[0]) && (n > 1 || o.MasterName != "" || o.Topology == Sentinel || o.Topology == Cluster):
		return errSocket
	case o.Topology == Sentinel && o.MasterName == "":
		return errors.New("master_name: it is missing; sentinels are asked for a master by its name")
	case o.Topology == Cluster && o.DB != 0:
		return errDB
	}
	switch o.Topology {
	case Single, Sentinel, Cluster, Auto:
	default:
		return fmt.Errorf("topology %q: use %q, %q, %q or %q", o.Topology, Auto, Single, Sentinel, Cluster)
	}
	if o.PoolSize < 1 || o.ConnectTimeout <= 0 || o.Timeout <= 0 || o.BreakerErrors < 1 || o.BreakerPause <= 0 {
		return errors.New("PoolSize, ConnectTimeout, Timeout, BreakerErrors, BreakerPause: all must be positive")
	}
	if o.Topology == Auto && o.MasterName != "" {
		o.Topology = Sentinel
	}
	return nil
}

// errDB is the cause when another database than the first is wanted in a cluster.
var errDB = errors.New("db: a cluster has only db 0")

// errSocket is the cause when a unix socket leads to sentinels or a cluster, whose servers have addresses.
var errSocket = errors.New("addresses: a unix socket leads to one server; use host:port for sentinels and a cluster")

// onSocket reports the path of a unix socket.
func onSocket(address string) bool {
	return strings.HasPrefix(address, "/") || strings.HasPrefix(address, "unix:")
}

// tooMany is the error for several servers that are none of one Redis: which of them has the stock?
func tooMany(n int) error {
	return fmt.Errorf("addresses: a single redis has one address, not %d", n)
}

// longest is how long a call that must connect first may take.
func (o Options) longest() time.Duration { return o.ConnectTimeout + o.Timeout }

// client says how go-redis must behave to keep our promises: by default it repeats commands, ignores
// deadlines, and pins every caller for many seconds while Redis is away.
func goRedisOptions(o Options, address string) redis.Options {
	network := "tcp"
	if onSocket(address) {
		network, address = "unix", strings.TrimPrefix(address, "unix:")
	}
	r := redis.Options{
		Network:               network,
		Addr:                  address,
		CredentialsProvider:   o.credentials,
		DB:                    o.DB,
		TLSConfig:             o.TLS,
		MaxRetries:            -1, // a command that timed out may have run
		ContextTimeoutEnabled: true,
		DialTimeout:           o.ConnectTimeout,
		DialerRetries:         1,
		ReadTimeout:           o.Timeout,
		WriteTimeout:          o.Timeout,
		PoolTimeout:           o.Timeout, // at a start most turns are taken by connections that are opened ahead
		PoolSize:              o.PoolSize,
		PipelinePoolSize:      -1, // pipelines too take the connections that are open already
		DisableIdentity:       true,
		Dialer:                o.Dialer,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled, // a handshake that plain Redis does not know
		},
	}
	if o.through != nil {
		r.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{Timeout: o.ConnectTimeout}).DialContext(ctx, network, o.through(address))
		}
	}
	return r
}

// credentials are those of the next connection.
func (o Options) credentials() (username, password string) {
	if o.Password == nil {
		return o.Username, ""
	}
	return o.Username, o.Password()
}
