package redisconn

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/periodic"
)

const (
	maxHops        = 8                     // servers that one call is put to
	tryAgainDelay  = 10 * time.Millisecond // while the keys of a SKU are at two servers
	slotsInterval  = 10 * time.Second      // from one reading of the slots to the next, without a cause
	slotlessPeriod = time.Minute           // a server that lost its slots may get some again
)

// cluster is the masters of a Redis Cluster. go-redis' cluster client reads which slot is whose. It runs no other
// command: it would repeat what timed out, and it does not tell which server it asks.
type cluster struct {
	options Options
	slots   *redis.ClusterClient
	mu      sync.Mutex // guards the rest
	owners  string     // who has which slots, as text
	all     map[string]*server
	closed  bool
}

func newCluster(o Options) *cluster {
	c := &cluster{options: o, all: make(map[string]*server)}
	c.slots = redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: o.Addresses, ClusterStateReloadInterval: slotsInterval,
		NewClient: func(node *redis.Options) *redis.Client {
			to := goRedisOptions(o, node.Addr)
			to.PoolSize, to.PoolTimeout = 1, o.longest()
			client := redis.NewClient(&to)
			client.AddHook(slotsRead{c, node.Addr})
			return client
		},
	})
	return c
}

func (*cluster) name() string { return Cluster }

// call makes a call to the owner of the key, and follows where that sends it.
func (c *cluster) call(ctx context.Context, w Route, q call) error {
	s, err := w.server, error(nil)
	if s == nil {
		if s, err = c.owner(ctx, w.key); err != nil {
			return err
		}
	}
	on := ctx
	for hop := 1; ; hop++ {
		err = s.call(on, w, q)
		if err == nil || hop == maxHops || w.server != nil {
			break
		}
		on = ctx
		if to, ok := redis.IsMovedError(err); ok {
			s = c.server(complete(to, s.address))
			c.slots.ReloadState(ctx)
		} else if to, ok := redis.IsAskError(err); ok {
			s, on = c.server(complete(to, s.address)), context.WithValue(ctx, askFirst{}, true)
		} else if !redis.IsTryAgainError(err) || !periodic.Pause(ctx, tryAgainDelay) {
			break
		} else if s, err = c.owner(ctx, w.key); err != nil {
			return err
		}
	}
	if q.counted(err) != nil {
		c.slots.ReloadState(ctx)
	}
	return err
}

// owner is the server that has a key; without a key any master, best a healthy one.
func (c *cluster) owner(ctx context.Context, key string) (s *server, err error) {
	for range maxHops {
		of := key
		if key == "" {
			of = strconv.Itoa(rand.Int())
		}
		client, err := c.slots.MasterForKey(ctx, of)
		if err != nil {
			return nil, fmt.Errorf("%w: read the slots of the cluster: %w", ErrUnsent, err)
		}
		if s = c.server(client.Options().Addr); key != "" || s.healthy() {
			break
		}
	}
	return s, nil
}

// Owner is the address of the master that has a key in a cluster, as far as that is known; "" elsewhere.
func (l *Client) Owner(ctx context.Context, key string) string {
	t := l.topology.Load()
	if t == nil {
		return ""
	}
	c, many := (*t).(*cluster)
	if !many {
		return ""
	}
	s, err := c.owner(ctx, key)
	if err != nil {
		return "" // the call will say so
	}
	return s.address
}

// servers are the masters.
func (c *cluster) servers(ctx context.Context) (all []*server, err error) {
	if _, err := c.owner(ctx, ""); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	err = c.slots.ForEachMaster(ctx, func(_ context.Context, client *redis.Client) error {
		s := c.server(client.Options().Addr)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
		return nil
	})
	return all, err
}

// server is the server at an address.
func (c *cluster) server(address string) *server {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.all[address]
	if s == nil {
		s = newServer(c.options, address, nil)
		if c.all[address] = s; c.closed {
			s.close()
		}
	}
	return s
}

func (c *cluster) close() {
	_ = c.slots.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, s := range c.all {
		s.close()
	}
}

// learn takes in who has which slots: callers are told when that has changed, and servers that have had no slots for a
// while are closed.
func (c *cluster) learn(all []redis.ClusterSlot) {
	masters, ranges := make(map[string]bool), make([]string, 0, len(all))
	for _, s := range all {
		if len(s.Nodes) > 0 {
			masters[s.Nodes[0].Addr] = true
			ranges = append(ranges, fmt.Sprintf("%05d-%d %s", s.Start, s.End, s.Nodes[0].Addr))
		}
	}
	slices.Sort(ranges)
	owners := strings.Join(ranges, "\n")
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.all, func(address string, s *server) bool {
		switch {
		case masters[address]:
			s.slotless = time.Time{}
		case s.slotless.IsZero():
			s.slotless = time.Now()
		case time.Since(s.slotless) > slotlessPeriod:
			s.close()
			return true
		}
		return false
	})
	before := c.owners
	c.owners = owners
	if before != "" && before != owners {
		c.options.Log.Info("slots of the redis cluster have another master", "masters", len(masters))
		if c.options.Moved != nil {
			c.options.Moved()
		}
	}
}

// slotsRead is a hook that sees which slots a server at an address names.
type slotsRead struct {
	cluster *cluster
	from    string
}

func (slotsRead) DialHook(next redis.DialHook) redis.DialHook { return next }

func (slotsRead) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook completes addresses without a host: a server that does not know its own names none.
func (h slotsRead) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		read, is := cmd.(*redis.ClusterSlotsCmd)
		if !is || err != nil {
			return err
		}
		all := read.Val()
		if len(all) == 0 {
			return fmt.Errorf("%s: the cluster has no slots", h.from)
		}
		for _, s := range all {
			for i := range s.Nodes {
				s.Nodes[i].Addr = complete(s.Nodes[i].Addr, h.from)
			}
		}
		h.cluster.learn(all)
		return nil
	}
}
