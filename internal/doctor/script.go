package doctor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"sluice/config"
	"sluice/internal/app/stores"
	"sluice/stockgate/ledger/redisstore"
	"sluice/stockgate/redisconn"
)

// checkScript tells what a script comes to.
func (o *Report) checkScript(c *config.Config) {
	s, errs := stores.CompileScript(c)
	if len(errs) > 0 {
		return // the configuration was rejected
	}
	if ttl := c.Stock.Script.TTL; ttl > 0 {
		o.Info("reserve", "by the shop's own script; an order that is not confirmed in %s is asked for, and its units are "+
			"given back", ttl)
	} else {
		o.Info("reserve", "by the shop's own script; an order whose outcome is unknown keeps its units for ever")
	}
	o.Warn("reserve", "%s; docs/scripts.md says what that means, and how to move to the ledger",
		stores.ScriptLimitations(s))
	if l, keys := c.Stock.Layout, s.Templates(); !slices.Contains(keys, l.Key) {
		o.Warn("reserve", "stock.layout.key = %q is none of the script's keys (%s): what is shown of the stock, and "+
			"\"sluice stock\", are about another key", l.Key, strings.Join(keys, " "))
	}
}

// tryScript finds out whether the keys of a script lie together on what Redis turns out to be, and whether its servers
// accept the Lua.
func (o *Report) tryScript(ctx context.Context, c *config.Config, way *redisconn.Client) {
	s, errs := stores.CompileScript(c)
	if len(errs) > 0 {
		o.Fail("script", "%v", errors.Join(errs...))
		return
	}
	if topology, err := way.Topology(ctx); err == nil && topology == redisconn.Cluster {
		if err := s.OneSlot(); err != nil {
			o.Fail("script", "%v", err)
			return
		}
	}
	if c.Stock.Script.TTL > 0 {
		if err := redisstore.CheckEviction(ctx, way); err != nil {
			o.Fail("redis", "%v; orders of stock.script.ttl that it evicts are never given back; %s", err,
				cmp.Or(evictionRemedy(err), redisconn.Remedy(err)))
		}
	}
	for _, text := range s.Texts() {
		if err := loadScript(ctx, way, s.Keys("")[0], text); err != nil {
			o.Fail("script", "Redis does not load script %s: %v", s.Name(), err)
			return
		}
	}
	o.OK("script", "Redis has loaded %s, and its keys lie where it needs them", s.Name())
}

// loadScript lets a server compile a script, without running it. A user who may not load scripts may still run them.
func loadScript(ctx context.Context, way *redisconn.Client, key, text string) error {
	err := way.To(key).Do(ctx, func(ctx context.Context, r *redis.Client) error {
		return r.ScriptLoad(ctx, text).Err()
	}, func(error) error { return nil })
	if redis.HasErrorPrefix(err, "NOPERM ") {
		return nil
	}
	return err
}
