package driver

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// newHashOrdered takes from a hash {total, ordered}: units, or 0. Its 0 also stands for a hash that is not there, which
// a second look tells apart.
func newHashOrdered(w way, k *keys, l Layout) decision {
	args := func(o *order) []any { return []any{o.quantity, l.TotalField, l.SoldField} }
	hash := hashOf{w, k, l.TotalField, l.SoldField, "", nil}
	return &scripted{
		way: w, taking: read("hash_ordered"), giving: read("hash_ordered_back"),
		keys: func(o *order) []string { return []string{k.stock.of(o)} },
		args: args, read: units, look: hash.look,
	}
}

// hashOf looks why a hash gave nothing.
type hashOf struct {
	way
	*keys
	total, sold, status string
	open                []string // nil = there is no status
}

// look tells what is sold out from what is not there, not on sale, or no number.
func (h hashOf) look(ctx context.Context, orders []*order) {
	h.lookAt(ctx, orders, notEnough, func(ctx context.Context, o *order) redis.Cmder {
		fields := []string{h.total, h.sold}
		if h.open != nil {
			fields = append(fields, h.status)
		}
		return redis.NewSliceCmd(ctx, hmget(h.stock.of(o), fields)...)
	}, func(o *order, cmd redis.Cmder) (why, error) {
		return h.found(o, cmd.(*redis.SliceCmd).Val())
	})
}

func hmget(key string, fields []string) []any {
	args := []any{"hmget", key}
	for _, f := range fields {
		args = append(args, f)
	}
	return args
}

// found reads the fields.
func (h hashOf) found(o *order, v []any) (why, error) {
	_, total, err1 := integer(v[0])
	_, sold, err2 := integer(v[1])
	switch {
	case err1 != nil || err2 != nil:
		return faulty, fmt.Errorf("look at %q: %s and %s are not both integers", o.sku, h.total, h.sold)
	case !total && !sold:
		return unknown, nil
	case !total || !sold:
		return faulty, fmt.Errorf("look at %q: the hash has not both %s and %s", o.sku, h.total, h.sold)
	}
	if h.open != nil {
		for _, status := range h.open {
			if v[2] == status {
				return notEnough, nil
			}
		}
		return offSale, nil
	}
	return notEnough, nil
}

// lookAt asks once for each SKU of the orders with an ambiguous answer, and puts what was found in its place.
func (w way) lookAt(ctx context.Context, orders []*order, ambiguous why, ask func(context.Context, *order) redis.Cmder, tell func(*order, redis.Cmder) (why, error)) {
	asked := make(map[string]redis.Cmder)
	var cmds []redis.Cmder
	for _, o := range orders {
		if o.why == ambiguous && asked[o.sku] == nil {
			asked[o.sku] = ask(ctx, o)
			cmds = append(cmds, asked[o.sku])
		}
	}
	_ = w.send(ctx, cmds) // each command has its own error
	for _, o := range orders {
		if o.why != ambiguous {
			continue
		}
		cmd := asked[o.sku]
		switch err := cmd.Err(); {
		case err == nil || err == redis.Nil:
			o.why, o.err = tell(o, cmd)
		default:
			o.why, o.err = nothing(err), err // nothing was taken
		}
	}
}
