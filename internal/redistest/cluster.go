package redistest

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/testkit"
)

// Nodes is a Redis Cluster.
type Nodes struct {
	Masters  []*Server
	Replicas []*Server // in the order in which Cluster was asked for them

	t   testing.TB
	ids map[*Server]string
}

// Cluster runs so many masters, each with an equal share of the slots in their order, until the test ends. replicated
// names masters by their index: each gets one replica, which takes the place of its master a minute after that is gone,
// or as soon as Successor is called. All of them agree on everything when it returns. Without the binary it does what
// Start does.
func Cluster(t testing.TB, masters int, replicated ...int) *Nodes {
	t.Helper()
	c := &Nodes{t: t, ids: make(map[*Server]string)}
	for range masters {
		c.Masters = append(c.Masters, c.node())
	}
	for range replicated {
		c.Replicas = append(c.Replicas, c.node())
	}
	c.joinAll()
	for i, s := range c.Masters {
		c.mustRun(s, "cluster", "addslotsrange", i*SlotCount/masters, (i+1)*SlotCount/masters-1)
	}
	await(t, "a cluster", func() bool { return c.agree(masters + len(replicated)) })
	for i, of := range replicated {
		c.mustRun(c.Replicas[i], "cluster", "replicate", c.ids[c.Masters[of]])
	}
	await(t, "replicas in step", func() bool {
		for _, of := range replicated {
			if c.Masters[of].followers() == 0 {
				return false
			}
		}
		return c.agree(masters + len(replicated))
	})
	c.SetTimeout(time.Minute) // a busy machine has no election that no test asks for
	return c
}

// Addrs are those of the masters.
func (c *Nodes) Addrs() (all []string) {
	for _, s := range c.Masters {
		all = append(all, s.Addr)
	}
	return all
}

// Client is a client for the whole cluster, for the test's own commands; it is closed with the test.
func (c *Nodes) Client() *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), ReadTimeout: 10 * time.Second,
		PoolTimeout: time.Minute})
	c.t.Cleanup(func() { client.Close() })
	return client
}

// Owner is the living master that says itself that it has a slot; nil when there is none.
func (c *Nodes) Owner(slot int) *Server {
	for _, s := range c.servers() {
		if s.process == nil || s.role() != "master" {
			continue
		}
		//lint:ignore SA1019 servers before 7.0 do not know CLUSTER SHARDS
		all, _ := s.Client.ClusterSlots(context.Background()).Result()
		for _, some := range all {
			if some.Start <= slot && slot <= some.End && len(some.Nodes) > 0 && some.Nodes[0].Addr == s.Addr {
				return s
			}
		}
	}
	return nil
}

// Move gives a slot with all of its keys to a master, as an operator would do with the cluster at work. between, if
// it is not nil, runs when some keys have moved, and again when all have, but the slot has not.
func (c *Nodes) Move(slot int, to *Server, between func()) {
	c.t.Helper()
	from := c.Owner(slot)
	if from == nil || from == to {
		return
	}
	// a node that has not heard of the latest move would claim the slot with an older one, and lose it
	await(c.t, "one epoch", c.sameEpoch)
	c.mustRun(to, "cluster", "setslot", slot, "importing", c.ids[from])
	c.mustRun(from, "cluster", "setslot", slot, "migrating", c.ids[to])
	host, port, _ := net.SplitHostPort(to.Addr)
	for {
		keys, err := from.Client.ClusterGetKeysInSlot(context.Background(), slot, 3).Result()
		if err != nil {
			c.t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		args := []any{"migrate", host, port, "", 0, 5000, "keys"}
		for _, key := range keys {
			args = append(args, key)
		}
		c.mustRun(from, args...)
		if between != nil {
			between()
		}
	}
	c.mustRun(to, "cluster", "setslot", slot, "node", c.ids[to])
	c.mustRun(from, "cluster", "setslot", slot, "node", c.ids[to])
}

// Successor waits until the replica with this index has become a master, and everybody who lives knows it. A server
// that is silent for a second counts as gone from then on.
func (c *Nodes) Successor(replica int) *Server {
	c.t.Helper()
	c.SetTimeout(time.Second)
	next := c.Replicas[replica]
	await(c.t, "an election", func() bool { return next.role() == "master" && c.living() })
	return next
}

// SetTimeout sets after how long without an answer a server counts as gone, a minute at first. A long time keeps a busy
// machine from an election, in which writes may be lost.
func (c *Nodes) SetTimeout(d time.Duration) {
	c.t.Helper()
	for _, s := range c.servers() {
		if s.process != nil {
			c.mustRun(s, "config", "set", "cluster-node-timeout", d.Milliseconds())
		}
	}
}

// node starts a server that belongs to no cluster yet.
func (c *Nodes) node() *Server {
	c.t.Helper()
	_, bus, _ := net.SplitHostPort(testkit.FreeAddress(c.t))
	s := Start(c.t, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000",
		"--cluster-replica-validity-factor", "0", "--cluster-require-full-coverage", "no",
		"--repl-diskless-sync-delay", "0", "--cluster-allow-replica-migration", "no")
	id, err := s.Client.Do(context.Background(), "cluster", "myid").Text()
	if err != nil {
		c.t.Fatal(err)
	}
	s.bus, c.ids[s] = bus, id
	return s
}

func (c *Nodes) servers() []*Server { return append(slices.Clone(c.Masters), c.Replicas...) }

// joinAll introduces all to the first.
func (c *Nodes) joinAll() {
	c.t.Helper()
	for i, s := range c.servers() {
		c.mustRun(s, "cluster", "set-config-epoch", i+1)
	}
	for _, s := range c.servers()[1:] {
		host, port, _ := net.SplitHostPort(s.Addr)
		c.mustRun(c.Masters[0], "cluster", "meet", host, port, s.bus)
	}
}

// agree reports whether all know each other and all slots.
func (c *Nodes) agree(servers int) bool {
	return !slices.ContainsFunc(c.servers(), func(s *Server) bool {
		text, err := s.Client.ClusterInfo(context.Background()).Result()
		return err != nil || !strings.Contains(text, "cluster_state:ok") ||
			!strings.Contains(text, "cluster_known_nodes:"+strconv.Itoa(servers)+"\r") ||
			!strings.Contains(text, "cluster_slots_ok:"+strconv.Itoa(SlotCount)+"\r")
	})
}

// living reports whether all that run say that all slots are served.
func (c *Nodes) living() bool {
	return !slices.ContainsFunc(c.servers(), func(s *Server) bool {
		if s.process == nil {
			return false
		}
		text, err := s.Client.ClusterInfo(context.Background()).Result()
		return err != nil || !strings.Contains(text, "cluster_state:ok") || !strings.Contains(text, "cluster_slots_fail:0\r")
	})
}

// sameEpoch reports whether all that run have heard of the latest change.
func (c *Nodes) sameEpoch() bool {
	seen := make(map[string]bool)
	for _, s := range c.servers() {
		if s.process == nil {
			continue
		}
		_, after, _ := strings.Cut(s.Client.ClusterInfo(context.Background()).Val(), "cluster_current_epoch:")
		epoch, _, _ := strings.Cut(after, "\r")
		seen[epoch] = true
	}
	return len(seen) == 1
}

// mustRun runs a command that must succeed.
func (c *Nodes) mustRun(s *Server, args ...any) {
	c.t.Helper()
	if err := s.Client.Do(context.Background(), args...).Err(); err != nil {
		c.t.Fatalf("redistest: %v: %v", args, err)
	}
}
