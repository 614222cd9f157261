package fleet

import (
	"context"
	_ "embed" // for the script
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/periodic"
	"sluice/limiter"
	"sluice/stockgate/redisconn"
)

// countEvery is how often the fleet is told what keys have used. What others admit is known so much later, and a
// round trip.
const countEvery = 100 * time.Millisecond

//go:embed lua/count.lua
var countScript string

// UseRates counts these rates together from now on, by their names.
func (f *Fleet) UseRates(rates map[string]*limiter.FleetShare) {
	rates = maps.Clone(rates)
	f.rates.Store(&rates)
}

func (f *Fleet) countRates(ctx context.Context) { periodic.After(ctx, countEvery, f.countOnce) }

// countOnce tells the fleet what keys have used here, in one round trip, and hears what all have used. Where no key was
// asked for it makes no call.
func (f *Fleet) countOnce(ctx context.Context) {
	rates := *f.rates.Load()
	uses := map[string][]limiter.FleetUse{}
	for name, rate := range rates {
		if of := rate.Uses(); len(of) > 0 {
			uses[name] = of
		}
	}
	if len(uses) == 0 {
		for _, rate := range rates {
			rate.Learn(f.options.Now(), nil, nil)
		}
		return
	}
	owed, err := f.count(ctx, uses)
	if ctx.Err() != nil {
		return
	}
	f.counts.Record(err)
	for name, rate := range rates {
		if err != nil {
			rate.Lose(f.options.Now(), uses[name])
		} else {
			rate.Learn(f.options.Now(), uses[name], owed[name])
		}
	}
}

// count makes the round trip, and returns what the keys of each rate owe, in ns.
func (f *Fleet) count(ctx context.Context, uses map[string][]limiter.FleetUse) (owed map[string][]int64, err error) {
	names := slices.Sorted(maps.Keys(uses))
	err = f.do(ctx, "count rates of", func(ctx context.Context, c redisconn.Commands) error {
		pipe := c.Pipeline()
		asked := make([]*redis.Cmd, len(names))
		for i, name := range names {
			keys, args := f.counted(name, uses[name])
			asked[i] = pipe.Eval(ctx, countScript, keys, args...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		owed = map[string][]int64{}
		for i, name := range names {
			told, err := asked[i].Int64Slice()
			if err == nil && len(told) != len(uses[name]) {
				err = fmt.Errorf("%d keys are told of, not %d", len(told), len(uses[name]))
			}
			if err != nil {
				return err
			}
			for j := range told {
				told[j] *= int64(time.Microsecond)
			}
			owed[name] = told
		}
		return nil
	})
	return owed, err
}

// counted are the keys and arguments of the script. What a client is counted by is a keyed hash there.
func (f *Fleet) counted(rate string, uses []limiter.FleetUse) (keys []string, args []any) {
	name := f.options.Name
	for _, use := range uses {
		keys = append(keys, name.Tagged("fleet", string(name), "rate:"+f.digest("rate", rate, use.Key)))
		tokens := use.Tokens
		if use.Reset {
			tokens = -1
		}
		args = append(args, tokens, micros(use.PerToken), micros(use.Most))
	}
	return keys, args
}

func micros(ns int64) string { return strconv.FormatFloat(float64(ns)/1000, 'f', 3, 64) }
