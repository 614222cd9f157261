package stockgate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/sony/gobreaker/v2"

	"sluice/stockgate/layout"
)

// RedisOptions are the keys under [stock.redis]. All durations and counts must be positive.
type RedisOptions struct {
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
}

// Redis is the stock that a shop keeps in one Redis, in a layout of its own. It is safe for concurrent use.
//
// No command is ever sent twice. After BreakerErrors the breaker opens: every call fails at once, without
// a packet, until BreakerPause is over; then one call tries. A Redis that hangs need not open it: one call at
// a time that waits for Timeout is not many errors a second, and does not harm either.
type Redis struct {
	layout  *layout.Layout
	options redis.Options
	longest time.Duration // a call that must connect first
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	metrics redisMetrics

	client atomic.Pointer[redis.Client]
	stale  atomic.Bool // the next call needs a new client
	mu     sync.Mutex  // guards the change of client, and closed
	closed bool
}

// NewRedis returns a Redis that reads stock in the layout l. It does not wait for Redis: whether it is there
// shows at the first call. The caller must Close it.
func NewRedis(o RedisOptions, l *layout.Layout) (*Redis, error) {
	if len(o.Addresses) != 1 {
		return nil, fmt.Errorf("addresses: one single Redis is supported, not %d addresses", len(o.Addresses))
	}
	if o.PoolSize < 1 || o.ConnectTimeout <= 0 || o.Timeout <= 0 || o.BreakerErrors < 1 || o.BreakerPause <= 0 {
		return nil, errors.New("pool_size, connect_timeout, timeout, breaker_errors, breaker_pause: all must be positive")
	}
	r := &Redis{layout: l, options: o.client(), longest: o.ConnectTimeout + o.Timeout}
	r.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Interval:      time.Second,
		BucketPeriod:  100 * time.Millisecond,
		Timeout:       o.BreakerPause,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return int64(c.TotalFailures) >= int64(o.BreakerErrors) },
		IsExcluded:    func(err error) bool { return errors.Is(err, context.Canceled) },
		OnStateChange: func(_ string, _, to gobreaker.State) { r.stale.Store(to == gobreaker.StateHalfOpen) },
	})
	r.client.Store(r.connect())
	return r, nil
}

// client says how go-redis must behave to keep our promises: by default it repeats commands, ignores
// deadlines, and pins every caller for many seconds while Redis is away.
func (o RedisOptions) client() redis.Options {
	return redis.Options{
		Network:               network(o.Addresses[0]),
		Addr:                  o.Addresses[0],
		Username:              o.Username,
		Password:              o.Password,
		DB:                    o.DB,
		TLSConfig:             o.TLS,
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

func (r *Redis) connect() *redis.Client {
	o := r.options
	return redis.NewClient(&o)
}

// Close closes all connections. Later calls fail.
func (r *Redis) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return r.client.Load().Close()
}

// call makes one round trip of size commands, when the breaker lets it. ask returns an error only when it
// learnt nothing.
func (r *Redis) call(ctx context.Context, op operation, size int, ask func(context.Context, *redis.Client) error) error {
	report, err := r.breaker.Allow()
	if err != nil {
		r.metrics.errors[leftAlone].Add(1)
		return fmt.Errorf("redis is left alone after too many errors: %w", err)
	}
	if r.stale.CompareAndSwap(true, false) {
		r.reconnect()
	}
	ctx, cancel := context.WithTimeout(ctx, r.longest)
	defer cancel()
	began := time.Now()
	err = ask(ctx, r.client.Load())
	r.metrics.observe(op, size, time.Since(began), err)
	report(lost(op, err))
	return err
}

// lost is err where it tells that Redis cannot be used. An operator's write into a key of the wrong type does not.
func lost(op operation, err error) error {
	if (op == set || op == add) && kindOf(err) == refused {
		return nil
	}
	return err
}

// reconnect replaces the client. The breaker's single try after a pause needs that: once as many dials have
// failed as the pool is large, go-redis dials only once a second and answers with the last error meanwhile.
func (r *Redis) reconnect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	_ = r.client.Swap(r.connect()).Close()
}

// Ping asks Redis whether it is there.
func (r *Redis) Ping(ctx context.Context) error {
	return r.call(ctx, ping, 1, func(ctx context.Context, c *redis.Client) error {
		if err := c.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("ping redis: %w", err)
		}
		return nil
	})
}
