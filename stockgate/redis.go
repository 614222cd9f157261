package stockgate

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/layout"
	"sluice/stockgate/link"
)

// RedisOptions are the keys under [stock.redis]. All durations and counts must be positive.
type RedisOptions = link.Options

// Redis is the stock that a shop keeps in one Redis, in a layout of its own. It is safe for concurrent use.
// No command is ever sent twice, and a Redis in trouble is left alone, as package link promises.
type Redis struct {
	layout  atomic.Pointer[layout.Layout]
	lists   emptied
	link    *link.Link
	metrics redisMetrics
}

// NewRedis returns a Redis that reads stock in the layout l. It does not wait for Redis: whether it is there
// shows at the first call. The caller must Close it.
func NewRedis(o RedisOptions, l *layout.Layout) (*Redis, error) {
	way, err := link.New(o)
	if err != nil {
		return nil, err
	}
	r := &Redis{link: way}
	r.layout.Store(l)
	return r, nil
}

// Close closes all connections. Later calls fail.
func (r *Redis) Close() error { return r.link.Close() }

// call makes one round trip of size commands, when the breaker lets it. ask returns an error only when it
// learnt nothing.
func (r *Redis) call(ctx context.Context, op operation, size int, ask func(context.Context, *redis.Client) error) error {
	err := r.link.Do(ctx, func(ctx context.Context, c *redis.Client) error {
		began := time.Now()
		err := ask(ctx, c)
		r.metrics.observe(op, size, time.Since(began), err)
		return err
	}, func(err error) error { return lost(op, err) })
	if errors.Is(err, link.ErrLeftAlone) {
		r.metrics.errors[leftAlone].Add(1)
	}
	return err
}

// lost is err where it tells that Redis cannot be used. An operator's write into a key of the wrong type does not,
// nor a script that is to be loaded first, or a command that only a newer Redis has.
func lost(op operation, err error) error {
	switch {
	case (op == set || op == add) && (kindOf(err) == refused || errors.Is(err, layout.ErrNotWritable)),
		op == read && (redis.HasErrorPrefix(err, noScript) || redis.HasErrorPrefix(err, noCommand)):
		return nil
	}
	return err
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
