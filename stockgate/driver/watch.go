package driver

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// watch takes from a string by WATCH, GET and MULTI, again when somebody else was faster, but not for ever.
type watch struct {
	way
	*keys
}

const watchTries = 10

func (w *watch) take(ctx context.Context, orders []*order) {
	w.each(ctx, orders, 1, func(o *order, found why, err error) { o.why, o.err = found, err })
}

func (w *watch) giveBack(ctx context.Context, orders []*order) {
	w.each(ctx, orders, -1, func(o *order, found why, err error) { o.given, o.err = found, err })
}

// each changes the stock for one order after the other. Once Redis does not answer nobody else is kept waiting for it.
func (w *watch) each(ctx context.Context, orders []*order, sign int64, tell func(*order, why, error)) {
	eachSKU(orders, func(of []*order) {
		var away error
		for _, o := range of {
			if away != nil {
				tell(o, notSent, away)
				continue
			}
			found, err := w.one(ctx, w.stock.of(o), sign*o.quantity)
			tell(o, found, err)
			if found == unsure || found == notSent {
				away = err
			}
		}
	})
}

// one takes units, or gives them back where they are below 0.
func (w *watch) one(ctx context.Context, key string, units int64) (found why, err error) {
	for range watchTries {
		sent := false
		err = w.To(key).Do(ctx, func(ctx context.Context, c *redis.Client) error {
			return c.Watch(ctx, func(tx *redis.Tx) error {
				found, err = enough(tx.Get(ctx, key), units)
				if found != taken {
					return err
				}
				sent = true
				_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.DecrBy(ctx, key, units).Err() })
				return err
			}, key)
		}, lost)
		switch {
		case errors.Is(err, redis.TxFailedErr):
			continue
		case err == nil:
			return found, nil
		case sent:
			return fail(err), err
		}
		return nothing(err), err
	}
	return contended, nil
}

// enough judges what a string holds.
func enough(cmd *redis.StringCmd, units int64) (why, error) {
	if errors.Is(cmd.Err(), redis.Nil) {
		return unknown, nil
	}
	if cmd.Err() != nil {
		return notSent, cmd.Err()
	}
	left, _, err := integer(cmd.Val())
	if err != nil {
		return faulty, err
	}
	if units > 0 && left < units {
		return notEnough, nil
	}
	return taken, nil
}
