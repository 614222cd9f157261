package config

import (
	"os"
	"time"
)

// Redis is how the stock's Redis is reached.
type Redis struct {
	// at least one "host:port": the server, the sentinels, or some of the cluster; or one path of a unix socket
	Addresses    []string      `toml:"addresses"`
	Topology     string        `toml:"topology" words:"auto single sentinel cluster"`
	MasterName   string        `toml:"master_name"` // sentinel; with auto it means sentinel
	Username     string        `toml:"username"`
	PasswordFile string        `toml:"password_file"`
	Password     Secret        // what PasswordFile held when it was read first
	PasswordAt   string        // its path, from wherever sluice was started
	DB           int           `toml:"db" unit:"number of a database" range:"0 to 1048576"` // 0 in a cluster
	TLS          bool          `toml:"tls"`
	Timeout      time.Duration `toml:"timeout" range:"above 0s"` // one command
	WaitReplicas int           `toml:"wait_replicas" unit:"replicas" range:"0 to 16"`
	Replicas     []string      `toml:"replicas"`                          // "host:port" of each, of which stock is read
	MaxStaleness time.Duration `toml:"max_staleness" range:"500ms to 1m"` // 500ms to 1m
}

func defaultRedis(env func(string) (string, bool)) Redis {
	address, _ := expandVariables("${REDIS_ADDR:-127.0.0.1:6379}", env)
	return Redis{
		Addresses:    []string{address},
		Topology:     "auto",
		Timeout:      100 * time.Millisecond,
		Replicas:     []string{},
		MaxStaleness: time.Second,
	}
}

// RedisConnections are those to each server. Orders and their outcomes take two, look-ups three, and sweeps the rest.
const RedisConnections = 16

// leastConnectTimeout bounds ConnectTimeout from below: a TLS handshake takes several round trips.
const leastConnectTimeout = 500 * time.Millisecond

// ConnectTimeout is how long a connection to a server may take: as long as a command, but at least 500 ms.
func (d *Redis) ConnectTimeout() time.Duration { return max(leastConnectTimeout, d.Timeout) }

// PasswordNow reads password_file again: passwords are changed while sales are on. As long as nothing can be read
// there, as while an editor writes it, the password is what it was.
func (d *Redis) PasswordNow() Secret {
	if d.PasswordAt == "" {
		return d.Password
	}
	if info, err := os.Stat(d.PasswordAt); err != nil || !info.Mode().IsRegular() { // a pipe would be waited for
		return d.Password
	}
	again := &report{}
	if now := again.Secret("stock.redis.password_file", "", d.PasswordAt); again.Err() == nil {
		return Secret(now)
	}
	return d.Password
}

func (d *Redis) check(r *report) {
	if len(d.Addresses) == 0 {
		r.Fail("stock.redis.addresses", "is empty; write where Redis is, like [\"127.0.0.1:6379\"]")
	}
	for i, address := range d.Addresses {
		if r.RedisAddress(Element("stock.redis.addresses", i), address) {
			d.checkSocket(r, Element("stock.redis.addresses", i))
		}
	}
	r.Unique(d.Addresses, func(i int) string { return Element("stock.redis.addresses", i) })
	switch {
	case d.Topology == "sentinel" && d.MasterName == "":
		r.Fail("stock.redis.master_name", "is missing: topology \"sentinel\" asks for a master by its name; write it")
	case d.MasterName != "" && (d.Topology == "single" || d.Topology == "cluster"):
		r.Fail("stock.redis.master_name", "means a sentinel, but topology is %q; write topology = \"sentinel\", or drop "+
			"it", d.Topology)
	case d.Topology == "single" && len(d.Addresses) > 1:
		r.Fail("stock.redis.addresses", "topology \"single\" has one address, not %d; write \"sentinel\" or \"cluster\", "+
			"or drop the others", len(d.Addresses))
	case d.Topology == "cluster" && d.DB != 0:
		r.Fail("stock.redis.db", "%d: a cluster has only db 0; write 0", d.DB)
	}
	d.checkReplicas(r)
}

// checkSocket wants no more than one server behind a unix socket: others are reached by addresses.
func (d *Redis) checkSocket(r *report, key string) {
	switch {
	case len(d.Addresses) > 1 || d.MasterName != "" || d.Topology == "sentinel" || d.Topology == "cluster":
		r.Fail(key, "%q is a unix socket, which leads to one server; write it alone, or host:port for sentinels and a "+
			"cluster", d.Addresses[0])
	case d.TLS:
		r.Fail("stock.redis.tls", "true is for addresses, and a unix socket has no certificate; write false, or host:port "+
			"into addresses")
	}
}

// checkReplicas wants replicas of a single Redis.
func (d *Redis) checkReplicas(r *report) {
	r.Rule("stock.redis.replicas", "host:port of each")
	for i, address := range d.Replicas {
		r.HostPort(Element("stock.redis.replicas", i), address)
	}
	r.Unique(d.Replicas, func(i int) string { return Element("stock.redis.replicas", i) })
	if len(d.Replicas) > 0 && d.Topology == "cluster" {
		r.Fail("stock.redis.replicas", "are for a single Redis or sentinels: of a cluster the masters are read; drop them")
	}
}
