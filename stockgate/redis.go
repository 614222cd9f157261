package stockgate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

// RedisOptions are the keys under [stock.redis]. All durations and counts must be positive.
type RedisOptions = redisconn.Options

// Redis is the stock that a shop keeps in one Redis, in a layout of its own: a single server, the master that sentinels
// name, or a cluster. It is safe for concurrent use. No command is ever sent twice, and a Redis in trouble is left
// alone, as package redisconn promises. While one master of a cluster is away only the SKUs on it cannot be known,
// unless the others serve no key then. Reading, writing and listing share its connections and its layout, and so its
// methods are many.
type Redis struct {
	layout   atomic.Pointer[layout.Layout]
	lists    emptiedLists
	link     *redisconn.Client
	shared   bool        // link is the caller's
	replicas *replicas   // nil = stock is read from the master
	fits     atomic.Bool // the layout may be used with this Redis
	apart    atomic.Bool // MGET is not to be had
	metrics  redisMetrics
	log      *slog.Logger
}

// NewRedis returns a Redis that reads stock in the layout l. It does not wait for Redis: whether it is there
// shows at the first call. The caller must Close it.
func NewRedis(o RedisOptions, l *layout.Layout) (*Redis, error) {
	link, err := redisconn.New(o)
	if err != nil {
		return nil, err
	}
	r := NewRedisOn(link, l, o.Log)
	r.shared = false
	return r, nil
}

// NewRedisOn is NewRedis on a link that stays the caller's. log may be nil.
func NewRedisOn(link *redisconn.Client, l *layout.Layout, log *slog.Logger) *Redis {
	r := &Redis{link: link, shared: true, log: log}
	if r.log == nil {
		r.log = slog.Default()
	}
	r.layout.Store(l)
	r.metrics.init()
	return r
}

// UseLayout reads stock in another layout from now on.
func (r *Redis) UseLayout(l *layout.Layout) {
	r.layout.Store(l)
	r.fits.Store(false)
}

// Layout is the one that stock is read in.
func (r *Redis) Layout() *layout.Layout { return r.layout.Load() }

// Close closes all connections that are its own. Later calls fail.
func (r *Redis) Close() error {
	r.replicas.close()
	if r.shared {
		return nil
	}
	return r.link.Close()
}

// Fit rejects a cluster in which keys of one SKU could be apart (layout.ErrApart). Every other call does so too.
func (r *Redis) Fit(ctx context.Context) error {
	if r.fits.Load() {
		return nil
	}
	if err := r.Fits(ctx, r.layout.Load()); err != nil {
		return err
	}
	r.fits.Store(true)
	return nil
}

// Fits is Fit for another layout.
func (r *Redis) Fits(ctx context.Context, l *layout.Layout) error {
	apart := l.InOneSlot(redisconn.Tag)
	if apart == nil {
		return nil
	}
	switch topology, err := r.link.Topology(ctx); {
	case err != nil:
		return err
	case topology == redisconn.Cluster:
		return apart
	}
	return nil
}

// call makes one round trip of one command on a way, when the breaker lets it. ask returns an error only when it learnt
// nothing.
func (r *Redis) call(ctx context.Context, way redisconn.Route, op operation,
	ask func(context.Context, redisconn.Commands) error) error {
	err := r.Fit(ctx)
	if err == nil {
		err = way.Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
			return r.timed(op, 1, func() error { return ask(ctx, c) })
		}, func(err error) error { return lost(op, err) })
	}
	if errors.Is(err, redisconn.ErrBreakerOpen) {
		r.metrics.errors[leftAlone].Add(1)
	}
	return err
}

// at is the way to the server that has a SKU.
func (r *Redis) at(sku string) redisconn.Route { return r.link.To(r.layout.Load().Key(sku)) }

// timed counts one round trip.
func (r *Redis) timed(op operation, size int, ask func() error) error {
	began := time.Now()
	err := ask()
	r.metrics.observe(op, size, time.Since(began), err)
	return err
}

// lost is err where it tells that Redis cannot be used. An operator's write into a key of the wrong type does not,
// nor a script that is to be loaded first, or a command that only a newer Redis has.
func lost(op operation, err error) error {
	switch {
	case (op == set || op == add) && (kindOf(err) == rejected || errors.Is(err, layout.ErrNotWritable)),
		op == read && (redis.HasErrorPrefix(err, noScript) || redis.HasErrorPrefix(err, noCommand)):
		return nil
	}
	return err
}

// Ping asks Redis whether it is there. Of a cluster one master that answers is enough: what the others have is known
// to be away when it is asked for.
func (r *Redis) Ping(ctx context.Context) error {
	err := r.ping(ctx, r.link.To(""))
	if err == nil || errors.Is(err, layout.ErrApart) {
		return err
	}
	servers, none := r.link.Servers(ctx)
	if none != nil || len(servers) < 2 {
		return err
	}
	for _, server := range servers {
		if r.ping(ctx, server) == nil {
			return nil
		}
	}
	return err
}

func (r *Redis) ping(ctx context.Context, way redisconn.Route) error {
	return r.call(ctx, way, ping, func(ctx context.Context, c redisconn.Commands) error {
		if err := c.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("ping redis: %w", err)
		}
		return r.serves(ctx, c)
	})
}

// errClusterDown is the cause where a server answers PING, and about no key.
var errClusterDown = errors.New("CLUSTERDOWN by CLUSTER INFO")

// serves reports a server of a cluster that answers about no key, as by cluster-require-full-coverage yes while one
// master is gone. A server that does not tell is taken to serve.
func (r *Redis) serves(ctx context.Context, c redisconn.Commands) error {
	if topology, err := r.link.Topology(ctx); err != nil || topology != redisconn.Cluster {
		return nil
	}
	if about, err := c.ClusterInfo(ctx).Result(); err == nil && strings.Contains(about, "cluster_state:fail") {
		return errClusterDown
	}
	return nil
}
