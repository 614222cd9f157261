package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

const (
	mostHops    = 8                      // servers that one question is put to
	tryAgain    = 10 * time.Millisecond  // while the keys of a SKU are at two servers
	reviewEvery = 10 * time.Second       // the slots, while there are calls
	reviewSoon  = 100 * time.Millisecond // after an error
	unownedFor  = time.Minute            // a server that lost its slots may get some again
)

// cluster is the masters of a Redis Cluster, and which slot is whose.
type cluster struct {
	options Options
	log     *slog.Logger
	owners  [slots]atomic.Pointer[node] // nil = nobody known
	known   atomic.Bool                 // owners were read once
	changed atomic.Bool                 // some slot has another owner, and nobody was told
	first   chan struct{}               // holds whoever reads owners for the first time
	review  *errands

	mu     sync.Mutex // guards nodes and closed
	nodes  map[string]*node
	closed bool
}

func newCluster(o Options, log *slog.Logger) *cluster {
	c := &cluster{options: o, log: log, nodes: make(map[string]*node), first: make(chan struct{}, 1)}
	c.review = newErrands(func(ctx context.Context) { _ = c.read(ctx) }, reviewEvery, reviewSoon)
	return c
}

func (*cluster) topology() string { return Cluster }

// ask puts a question to the owner of the key, and follows where that sends it.
func (c *cluster) ask(ctx context.Context, w Way, q question) error {
	n, err := c.owner(ctx, w)
	if err != nil {
		return err
	}
	asking := false
	for hop := 1; ; hop++ {
		err = c.put(ctx, n, q, asking)
		to := elsewhere(err)
		if to.kind == here || hop == mostHops || w.node != nil {
			break
		}
		asking = false
		switch to.kind {
		case moved:
			n = c.node(complete(to.address, n.address))
			c.own(to.slot, n)
			c.review.soon()
		case ask:
			n, asking = c.node(complete(to.address, n.address)), true
		case again:
			if !wait(ctx, tryAgain) {
				return err
			}
			if n, err = c.owner(ctx, w); err != nil {
				return err
			}
		}
	}
	if err != nil && (errors.Is(err, ErrLeftAlone) || q.lost(err) != nil) {
		c.review.soon()
	} else {
		c.review.due()
	}
	return err
}

// put asks one server. Whoever did not answer the last time has less time, so that a server that hangs slows nobody down
// who asks several after each other.
func (c *cluster) put(ctx context.Context, n *node, q question, asking bool) error {
	if n.failing.Load() != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.options.Timeout)
		defer cancel()
	}
	return n.ask(ctx, q, asking)
}

// wait reports false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// owner is who has w's key; any master will do for a way without one, or to a slot that nobody has.
func (c *cluster) owner(ctx context.Context, w Way) (*node, error) {
	if w.node != nil {
		return w.node, nil
	}
	if err := c.know(ctx); err != nil {
		return nil, err
	}
	if w.key != "" {
		if n := c.owners[Slot(w.key)].Load(); n != nil {
			return n, nil
		}
	}
	all := c.masters()
	if len(all) == 0 {
		return nil, errNoOwners
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, n := range all {
		if n.failing.Load() == 0 && n.breaker.State() != gobreaker.StateOpen {
			return n, nil
		}
	}
	return all[0], nil
}

// errNoOwners is the cause when a cluster has no slots yet.
var errNoOwners = errors.New("the cluster has no slots")

// masters are the servers that have slots.
func (c *cluster) masters() (all []*node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if n.unowned.Load() == 0 {
			all = append(all, n)
		}
	}
	return all
}

func (c *cluster) servers(ctx context.Context) ([]*node, error) {
	if err := c.know(ctx); err != nil {
		return nil, err
	}
	return c.masters(), nil
}

// node is the server at an address. One without slots is forgotten after a while.
func (c *cluster) node(address string) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[address]
	if n == nil {
		n = newNode(c.options, address, nil)
		n.unowned.Store(time.Now().UnixNano())
		if c.nodes[address] = n; c.closed {
			n.close()
		}
	}
	return n
}

// own notes who has a slot.
func (c *cluster) own(slot int, n *node) {
	n.unowned.Store(0)
	if before := c.owners[slot].Swap(n); before != nil && before != n {
		c.changed.Store(true)
	}
}

// know reads the slots where nobody has yet.
func (c *cluster) know(ctx context.Context) error {
	if c.known.Load() {
		return nil
	}
	select {
	case c.first <- struct{}{}:
		defer func() { <-c.first }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.known.Load() {
		return nil
	}
	return c.read(ctx)
}

func (c *cluster) close() {
	c.review.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, n := range c.nodes {
		n.close()
	}
}

// read asks one server after the other who has which slots, until one answers.
func (c *cluster) read(ctx context.Context) error {
	err := errNoOwners
	for _, address := range c.addresses() {
		var all []redis.ClusterSlot
		err = c.readFrom(ctx, address, &all)
		if err == nil {
			c.take(all, address)
			return nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return fmt.Errorf("read the cluster's slots: %w", err)
}

func (c *cluster) readFrom(ctx context.Context, address string, all *[]redis.ClusterSlot) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.ConnectTimeout+c.options.Timeout)
	defer cancel()
	return c.options.once(ctx, address, func(ctx context.Context, client *redis.Client) (err error) {
		//lint:ignore SA1019 servers before 7.0 do not know CLUSTER SHARDS
		if *all, err = client.ClusterSlots(ctx).Result(); err == nil && len(*all) == 0 {
			err = errNoOwners
		}
		return err
	})
}

// addresses are of those who may know the slots: the masters, in no order, then the configured ones.
func (c *cluster) addresses() (all []string) {
	for _, n := range c.masters() {
		all = append(all, n.address)
	}
	configured := slices.Clone(c.options.Addresses)
	for _, list := range [][]string{all, configured} {
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return append(all, configured...)
}

// take learns who has which slots from what the server at an address said.
func (c *cluster) take(all []redis.ClusterSlot, from string) {
	owns, covered := make(map[*node]bool), make([]bool, slots)
	for _, s := range all {
		if len(s.Nodes) == 0 {
			continue
		}
		n := c.node(complete(s.Nodes[0].Addr, from))
		owns[n] = true
		for slot := max(s.Start, 0); slot <= s.End && slot < slots; slot++ {
			c.own(slot, n)
			covered[slot] = true
		}
	}
	for slot := range covered {
		if !covered[slot] {
			c.owners[slot].Store(nil)
		}
	}
	c.forget(owns)
	c.known.Store(true)
	if c.changed.Swap(false) {
		c.log.Info("slots of the redis cluster have another master", "masters", len(owns))
		if c.options.Moved != nil {
			c.options.Moved()
		}
	}
}

// forget closes servers that have had no slots for a while.
func (c *cluster) forget(owns map[*node]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().UnixNano()
	for address, n := range c.nodes {
		switch since := n.unowned.Load(); {
		case owns[n]:
		case since == 0:
			n.unowned.Store(now)
		case now-since > int64(unownedFor):
			delete(c.nodes, address)
			n.close()
		}
	}
}
