package doctor

import (
	"strings"

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
