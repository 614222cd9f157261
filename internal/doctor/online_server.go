package doctor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/periodic"
	"sluice/stockgate"
	"sluice/stockgate/redisconn"
)

// Clocks that differ by more than this are told, or fail the check: deadlines and hours are of this machine's clock,
// what a ledger notes of its instances is of Redis'.
const (
	skewWarns = 100 * time.Millisecond
	skewFails = time.Second
)

// quietly has the check alone say what was found.
func quietly(o redisconn.Options) redisconn.Options {
	o.Log = slog.New(slog.DiscardHandler)
	return o
}

// tryServer looks at the Redis itself: whether it keeps what it has said, what this user may do.
func (o *Report) tryServer(ctx context.Context, c *config.Config, way *redisconn.Client) {
	_ = way.Do(ctx, func(ctx context.Context, r redisconn.Commands) error {
		o.checkClock(ctx, r)
		if c.UsesLedger() {
			o.checkPersistence(ctx, r)
			o.tryRights(ctx, stores.Name(c), r)
		}
		return nil
	}, func(error) error { return nil })
}

// checkServers says what Redis is, and of each server that takes writes what would keep orders from it, or lose them in
// a fail-over.
func (o *Report) checkServers(ctx context.Context, c *config.Config, way *redisconn.Client) {
	topology, err := way.Topology(ctx)
	var servers []redisconn.Route
	if err == nil {
		servers, err = way.Servers(ctx)
	}
	if err != nil {
		o.Fail("redis", "%v", err)
		return
	}
	switch topology {
	case redisconn.Sentinel:
		o.OK("redis", "it is a master behind sentinels")
	case redisconn.Cluster:
		o.OK("redis", "it is a cluster, with %d taking writes", len(servers))
	}
	for _, one := range servers {
		at := cmp.Or(one.Address(), "the master")
		err := one.Do(ctx, func(ctx context.Context, r redisconn.Commands) error { return o.checkServer(ctx, c, r, at) }, nil)
		if err != nil {
			o.Fail("redis", "%s: %v", at, err)
		}
	}
}

// section reads a section of INFO, or the usual ones; nil where Redis does not tell.
func section(ctx context.Context, r redisconn.Commands, name ...string) (map[string]string, error) {
	text, err := r.Info(ctx, name...).Result()
	if err != nil {
		return nil, err
	}
	all := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[key] = value
		}
	}
	return all, nil
}

// checkServer judges the server at an address.
func (o *Report) checkServer(ctx context.Context, c *config.Config, r redisconn.Commands, at string) error {
	info, err := section(ctx, r)
	switch {
	case err != nil && !redis.HasErrorPrefix(err, "NOPERM"):
		return err
	case info["redis_version"] == "":
		o.Warn("version", "%s does not tell its version and its replicas: INFO is denied; allow it: ACL SETUSER … +info, so "+
			"that a restart is noticed at once", at)
		return nil
	}
	version := "redis " + info["redis_version"]
	if v := info["valkey_version"]; v != "" {
		version = "valkey " + v + ", as " + version
	}
	if info["role"] == "slave" {
		o.Fail("replicas", "%s is a replica of %s:%s, which takes no orders; write its master into stock.redis.addresses", at,
			info["master_host"], info["master_port"])
		return nil
	}
	if c.UsesLedger() && older(info["redis_version"], 6, 2) {
		o.Fail("version", "%s is %s, too old for ledgers, which need 6.2; upgrade it", at, version)
	} else {
		o.OK("version", "%s answers as %s", at, version)
	}
	if c.UsesLedger() {
		o.checkReplicas(ctx, c, r, at, info["connected_slaves"])
	}
	return nil
}

// older reports whether a version is before major.minor. What cannot be read is not.
func older(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(first)
	b, err2 := strconv.Atoi(second)
	return err1 == nil && err2 == nil && (a < major || a == major && b < minor)
}

// checkClock compares the clocks, to half of the time that it takes to ask.
func (o *Report) checkClock(ctx context.Context, r redisconn.Commands) {
	var skew, unsure time.Duration
	for try := range 3 { // the quickest answer tells best
		began := time.Now()
		there, err := r.Time(ctx).Result()
		took := time.Since(began)
		if err != nil {
			o.Warn("clock", "redis does not tell its time: %v; allow it: ACL SETUSER … +time", err)
			return
		}
		if try == 0 || took < 2*unsure {
			skew, unsure = there.Sub(began.Add(took/2)), took/2
		}
	}
	certain := max(skew.Abs()-unsure, 0)
	text := fmt.Sprintf("redis is %s off this machine's clock, give or take %s", skew.Round(time.Millisecond),
		unsure.Round(100*time.Microsecond))
	const cure = "let NTP (chrony, timedatectl set-ntp true) set both"
	switch {
	case certain > skewFails:
		o.Fail("clock", "%s; %s", text, cure)
	case certain > skewWarns:
		o.Warn("clock", "%s; %s", text, cure)
	default:
		o.OK("clock", "%s", text)
	}
}

func (o *Report) checkPersistence(ctx context.Context, r redisconn.Commands) {
	info, _ := section(ctx, r, "persistence")
	save, err := r.ConfigGet(ctx, "save").Result()
	switch {
	case info == nil:
		o.Warn("disk", "redis does not tell what it keeps on disk; allow it: ACL SETUSER … +info")
	case info["aof_enabled"] == "1" && info["aof_last_write_status"] == "err":
		o.Fail("disk", "the append-only file cannot be written: look at the disk and at redis' log")
	case info["aof_enabled"] == "1":
		o.OK("disk", "changes are kept in the append-only file")
	case err != nil:
		o.Warn("disk", "there is no append-only file, so that a restart forgets orders; redis-cli CONFIG SET appendonly "+
			"yes, then CONFIG REWRITE")
	case save["save"] == "":
		o.Warn("disk", "nothing is kept on disk: a restart forgets every ledger; redis-cli CONFIG SET appendonly yes, then "+
			"CONFIG REWRITE")
	default:
		o.Warn("disk", "snapshots alone are kept (save %s): a restart forgets the orders since the last one, and their "+
			"SKUs freeze; redis-cli CONFIG SET appendonly yes, then CONFIG REWRITE", save["save"])
	}
}

// checkReplicas holds the replicas against wait_replicas, and looks for what keeps a master that was left from selling.
func (o *Report) checkReplicas(ctx context.Context, c *config.Config, r redisconn.Commands, at, connected string) {
	replicas, _ := strconv.Atoi(connected)
	if wanted := c.Stock.Redis.WaitReplicas; replicas < wanted {
		o.Fail("replicas", "%s has %d replicas, and stock.redis.wait_replicas is %d: nothing would be sold; start them, or "+
			"lower it", at, replicas, wanted)
		return
	}
	o.OK("replicas", "%s has %d replicas, %d waited for", at, replicas, c.Stock.Redis.WaitReplicas)
	least, err := r.ConfigGet(ctx, "min-replicas-to-write").Result()
	if err == nil && replicas > 0 && least["min-replicas-to-write"] == "0" {
		o.Warn("replicas", "%s goes on taking orders when its replicas have left it; redis-cli CONFIG SET "+
			"min-replicas-to-write 1, CONFIG SET min-replicas-max-lag 10, then CONFIG REWRITE", at)
	}
}

// measureTime is how long replicas are measured: some of their measurements.
const measureTime = 2 * time.Second

// tryReplicas measures the replicas that stock is read from. r reads from them from now on.
func (o *Report) tryReplicas(ctx context.Context, c *config.Config, r *stockgate.Redis) {
	if err := r.ReadFrom(quietly(stores.RedisOptions(c)), c.Stock.Redis.Replicas, c.Stock.Redis.MaxStaleness); err != nil {
		o.Fail("replicas", "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	unread := func(s stockgate.Replica) bool { return !s.Read }
	for slices.ContainsFunc(r.Replicas(), unread) && periodic.Pause(ctx, 50*time.Millisecond) {
		continue
	}
	for _, s := range r.Replicas() {
		if s.Read {
			o.OK("replicas", "%s is %s behind its master; stock is read there", s.Address, s.Staleness.Round(time.Millisecond))
		} else {
			o.Fail("replicas", "stock is not read from %s, and its load falls on the master: it %s; correct "+
				"stock.redis.replicas, or the replica's replicaof", s.Address, s.Fault)
		}
	}
}
