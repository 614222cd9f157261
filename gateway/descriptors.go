package gateway

import (
	"log/slog"

	"sluice/config"
)

// descriptors divides the files that this process may have open. Clients get what is left when the upstream, Redis and
// the listeners for operators have their share, so that no number of clients takes these.
type descriptors struct {
	allowed int // RLIMIT_NOFILE; the Go runtime has raised the soft limit to the hard one. 0 = not known
	log     *slog.Logger
	lowered int // what limits.connection.max_connections it was lowered to last; 0 = it was not
}

const (
	ownDescriptors = 64  // listeners, event loops, logs, the spare ones, files that a reload reads
	leastAside     = 32  // connections of each listener for operators: 64 of both
	mostAside      = 512 // likewise
	maxRejected    = 256 // clients that still read a rejection; at most an eighth of all
)

// aside is how many connections one listener for operators may have.
func (d *descriptors) aside() int {
	if d.allowed == 0 {
		return mostAside
	}
	return min(max(d.allowed/64, leastAside), mostAside)
}

// upstreamConns is how many connections to the upstream the configuration allows.
func upstreamConns(c *config.Config) int { return c.Upstream.MaxConns * len(c.Upstream.Targets) }

// redisConns is how many there may be to Redis, with those of a server that is about to be left.
func redisConns(c *config.Config) int {
	return 2 * config.RedisConnections * max(len(c.Stock.Redis.Addresses), 1)
}

// clients is how many descriptors clients may hold, those included that still read a rejection. An upstream never needs
// more connections than there are clients, so it gets half of what is left at most. 0 = no bound is known.
func (d *descriptors) clients(c *config.Config) int {
	if d.allowed == 0 {
		return 0
	}
	left := max(d.allowed-ownDescriptors-2*d.aside()-redisConns(c), 2)
	return max(left-upstreamConns(c), left/2)
}

// maxOpen is limits.connection.max_connections, or as much of it as there are descriptors for.
func (d *descriptors) maxOpen(c *config.Config) int {
	want, clients := c.Limits.Connection.MaxConnections, d.clients(c)
	if clients == 0 {
		return want
	}
	most := max(clients-min(clients/8, maxRejected), 1)
	if want <= most {
		d.lowered = 0
		return want
	}
	if d.lowered != most {
		d.lowered = most
		d.log.Warn("limits.connection.max_connections is lowered, since this process may open too few files; "+
			"allow it as many as are needed (LimitNOFILE in the unit, ulimits.nofile in compose, ulimit -n), or lower the key",
			"max_connections", want, "lowered_to", most, "allowed", d.allowed,
			"needed", want+maxRejected+ownDescriptors+2*mostAside+redisConns(c)+upstreamConns(c))
	}
	return most
}
