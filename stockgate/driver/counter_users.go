package driver

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// newCounterUsers takes one unit from a string for a user who is not in the set beside it: -1 none, 0 repeated, 1 done.
// Its -1 also stands for a string that is not there, which a second look tells apart.
func newCounterUsers(w way, k *keys) decision {
	s := &scripted{
		way: w, taking: read("counter_users"), giving: read("counter_users_back"),
		keys:     func(o *order) []string { return []string{k.stock.of(o), k.users.of(o)} },
		args:     func(o *order) []any { return []any{o.user} },
		read:     codes(map[int64]why{-1: notEnough, 0: repeated, 1: taken}),
		readBack: codes(map[int64]why{0: notEnough, 1: taken}),
	}
	s.look = func(ctx context.Context, orders []*order) {
		w.lookAt(ctx, orders, notEnough, func(ctx context.Context, o *order) redis.Cmder {
			return redis.NewIntCmd(ctx, "exists", k.stock.of(o))
		}, thereOrUnknown)
	}
	return s
}

// thereOrUnknown reads whether a key exists.
func thereOrUnknown(o *order, cmd redis.Cmder) (why, error) {
	if cmd.(*redis.IntCmd).Val() == 0 {
		return unknown, nil
	}
	return notEnough, nil
}

// newListUsers takes one element from a list of units for a user who is not in the set beside it: {-1} none, {0}
// repeated, {1, the unit} done. Redis forgets an empty list, so that only the set tells a sold-out SKU from one that
// never was.
func newListUsers(w way, k *keys) decision {
	s := &scripted{
		way: w, taking: read("list_users"), giving: read("list_users_back"),
		keys:     func(o *order) []string { return []string{k.stock.of(o), k.users.of(o)} },
		args:     func(o *order) []any { return []any{o.user} },
		argsBack: func(o *order) []any { return []any{o.user, o.unit} },
		read:     popped,
	}
	s.look = func(ctx context.Context, orders []*order) {
		w.lookAt(ctx, orders, notEnough, func(ctx context.Context, o *order) redis.Cmder {
			return redis.NewIntCmd(ctx, "exists", k.stock.of(o), k.users.of(o))
		}, thereOrUnknown)
	}
	return s
}

// popped reads a code and the unit.
func popped(o *order, reply any) (why, error) {
	if v, ok := reply.([]any); ok && len(v) > 0 {
		switch v[0] {
		case int64(-1):
			return notEnough, nil
		case int64(0):
			return repeated, nil
		case int64(1):
			if len(v) > 1 {
				o.unit, _ = v[1].(string)
			}
			return taken, nil
		}
	}
	return faulty, fmt.Errorf("decide %q: %v is none of the script's codes", o.sku, reply)
}
