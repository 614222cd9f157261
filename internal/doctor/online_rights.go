package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

// tryRights runs each command that ledgers need, on keys of its own, which it takes away again.
func (o *Report) tryRights(ctx context.Context, shop redisconn.Name, r redisconn.Commands) {
	tag := shop.SKUKey("check "+rand.Text(), "")
	hash, zset, stream, text := tag+"s", tag+"x", tag+"q", tag+"t"
	defer func() {
		if err := r.Del(context.WithoutCancel(ctx), hash, zset, stream, text).Err(); redis.HasErrorPrefix(err, "NOPERM") {
			o.Warn("rights", "this user may not run del, which only this check needs: %ss, x, q and t stay behind", tag)
		}
	}()
	var denied []string
	keys := false
	for _, words := range needed(hash, zset, stream, text, shop.Key("check")) {
		err := r.Do(ctx, words...).Err()
		var reply redis.Error
		switch {
		case err == nil, errors.Is(err, redis.Nil):
		case redis.HasErrorPrefix(err, "NOPERM"):
			name, _ := words[0].(string)
			if strings.Contains(err.Error(), "key") || strings.Contains(err.Error(), "channel") {
				keys = true
			} else if !slices.Contains(denied, name) {
				denied = append(denied, name)
			}
		// what it needs was denied before
		case redis.HasErrorPrefix(err, "NOSCRIPT"), redis.HasErrorPrefix(err, "no such key"):
		case errors.As(err, &reply):
			o.Fail("rights", "try %s: %v; %s", words[0], err, redisconn.Remedy(err))
			return
		default:
			o.Fail("rights", "%v; %s", err, redisconn.Remedy(err))
			return
		}
	}
	switch {
	case keys:
		o.Fail("rights", "this user may not touch the gateway's own keys and channel; redis-cli ACL SETUSER … ~%s &%s",
			shop.Key("*"), shop.Key("*"))
	case len(denied) > 0:
		o.Fail("rights", "this user may not run %s; redis-cli ACL SETUSER … +%s", strings.Join(denied, " "),
			strings.Join(denied, " +"))
	default:
		o.OK("rights", "this user may run all commands that ledgers need, and scripts")
	}
}

// needed are the commands of the ledgers, those inside of their scripts too: Redis asks for the right to each.
func needed(hash, zset, stream, text, channel string) [][]any {
	return [][]any{
		{"eval", "return redis.call('HSET', KEYS[1], 'a', '1')", 1, hash},
		{"script", "load", "return 1"},
		{"evalsha", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", 0}, // of "return 1"
		{"hset", hash, "a", 1}, {"hget", hash, "a"}, {"hmget", hash, "a"}, {"hgetall", hash}, {"hlen", hash},
		{"hscan", hash, 0}, {"hdel", hash, "b"}, {"hexists", hash, "a"},
		{"pexpire", hash, 60_000}, {"pttl", hash}, {"exists", hash}, {"type", hash}, {"time"},
		{"zadd", zset, 1, "a"}, {"zcard", zset}, {"zscore", zset, "a"},
		{"zrange", zset, 0, 1}, {"zrangebyscore", zset, 0, 1},
		{"zrem", zset, "b"},
		{"xadd", stream, "*", "a", "1"}, {"xlen", stream}, {"xrevrange", stream, "+", "-"}, {"xinfo", "groups", stream},
		{"xtrim", stream, "maxlen", 100},
		{"set", text, 1, "nx"}, {"get", text}, {"incr", text}, {"publish", channel, ""}, {"wait", 0, 1},
	}
}
