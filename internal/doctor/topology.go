package doctor

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"sluice/config"
	"sluice/stockgate/redisconn"
)

// checkTopology says what Redis is taken for.
func (o *Report) checkTopology(c *config.Config) {
	r := c.Stock.Redis
	at := strings.Join(r.Addresses, " ")
	switch {
	case r.Topology == redisconn.Sentinel || r.Topology == redisconn.Auto && r.MasterName != "":
		o.Info("topology", "the master %q, of which the sentinels at %s tell where it is", r.MasterName, at)
	case r.Topology == redisconn.Cluster:
		o.Info("topology", "a cluster, found by way of %s; %d connections to each of its masters", at,
			config.RedisConnections)
	case r.Topology == redisconn.Single:
		o.Info("topology", "one server, %s", at)
	default:
		o.Info("topology", "%s says itself, when it is reached, whether it is one server, a sentinel or of a cluster", at)
	}
}

// server is what one of them says of itself; "" = it does not tell.
type server struct {
	version, role string
	number        string // of the version that Redis calls itself
	replicas      int
	minimum       string // min-replicas-to-write
}

// checkServers says what Redis is, and what of its settings would lose orders in a fail-over.
func (o *Report) checkServers(ctx context.Context, c *config.Config, way *redisconn.Client) {
	topology, err := way.Topology(ctx)
	if err != nil {
		o.Fail("redis", "%v", err)
		return
	}
	servers, err := way.Servers(ctx)
	if err != nil {
		o.Fail("redis", "%v", err)
		return
	}
	switch topology {
	case redisconn.Single: // what else there is to say, "version" and "replicas" do
		if s, err := describe(ctx, servers[0]); err == nil && !c.UsesLedger() && s.role != "" && s.role != "master" {
			o.checkServer(c, servers[0].Address(), s)
		}
		return
	case redisconn.Sentinel:
		o.OK("redis", "it is a master behind sentinels")
		return
	}
	o.OK("redis", "it is a cluster, with %d taking writes", len(servers))
	for _, one := range servers {
		s, err := describe(ctx, one)
		at := cmp.Or(one.Address(), "the master")
		if err != nil {
			o.Fail("redis", "%s: %v", at, err)
			continue
		}
		o.checkServer(c, at, s)
	}
}

// checkServer judges one server.
func (o *Report) checkServer(c *config.Config, at string, s server) {
	if s.version == "" && s.role == "" {
		o.Warn("redis", "%s does not tell its version and its replicas: INFO is denied; allow it: ACL SETUSER … +info", at)
		return
	}
	wanted := c.Stock.Redis.WaitReplicas
	switch {
	case s.role != "" && s.role != "master":
		o.Fail("redis", "%s is a %s, which takes no writes; write its master's address", at, s.role)
		return
	case c.UsesLedger() && older(s.number, 6, 2):
		o.Fail("redis", "%s is %s, too old for ledgers, which need 6.2; upgrade it", at, s.version)
	case c.UsesLedger() && s.replicas < wanted:
		o.Fail("redis", "%s (%s) has %d replicas, and stock.redis.wait_replicas is %d: no order would be taken; add "+
			"replicas, or lower it", at, s.version, s.replicas, wanted)
	default:
		o.OK("redis", "%s is %s, with %d replicas", at, s.version, s.replicas)
	}
	if c.UsesLedger() && s.replicas > 0 && s.minimum == "0" {
		o.Warn("redis", "%s takes writes though no replica gets them (min-replicas-to-write 0): what it sells while it is "+
			"cut off is lost with it; "+
			"write min-replicas-to-write 1 and min-replicas-max-lag 10 into its redis.conf, and for now: redis-cli CONFIG SET "+
			"min-replicas-to-write 1", at)
	}
}

// describe asks one server about itself.
func describe(ctx context.Context, way redisconn.Route) (s server, err error) {
	err = way.Do(ctx, func(ctx context.Context, c *redis.Client) error {
		info, err := section(ctx, c)
		if err != nil && !redis.HasErrorPrefix(err, "NOPERM") {
			return err
		}
		s.role, s.number = info["role"], info["redis_version"]
		s.replicas, _ = strconv.Atoi(info["connected_slaves"])
		if valkey := info["valkey_version"]; valkey != "" {
			s.version = "Valkey " + valkey
		} else if s.number != "" {
			s.version = "Redis " + s.number
		}
		if found, err := c.ConfigGet(ctx, "min-replicas-to-write").Result(); err == nil { // it may be denied
			s.minimum = found["min-replicas-to-write"]
		}
		return nil
	}, nil)
	return s, err
}
