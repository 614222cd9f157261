package driver

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// watch takes from a string by WATCH, GET and MULTI, again when somebody else was faster, but not for ever.
type watch struct {
	way
	*keys
}

const watchTries = 10

func (w *watch) take(ctx context.Context, orders []*order) {
	eachSKU(orders, func(of []*order) {
		for i, o := range of {
			o.why, o.err = w.one(ctx, o)
			if o.why == unsure || o.why == notSent { // a time-out each would be too long for those who follow
				for _, o := range of[i+1:] {
					o.why, o.err = notSent, of[i].err
				}
				return
			}
		}
	})
}

// one takes the units of one order.
func (w *watch) one(ctx context.Context, o *order) (found why, err error) {
	key := w.stock.of(o, w.parts)
	for range watchTries {
		sent := false
		err = w.Do(ctx, func(ctx context.Context, c *redis.Client) error {
			return c.Watch(ctx, func(tx *redis.Tx) error {
				found, err = enough(tx.Get(ctx, key), o.quantity)
				if found != taken {
					return err
				}
				sent = true
				_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.DecrBy(ctx, key, o.quantity).Err() })
				return err
			}, key)
		}, lost)
		switch {
		case errors.Is(err, redis.TxFailedErr):
			continue
		case err == nil:
			return found, nil
		case answered(err):
			return faulty, err
		case sent && !unsent(err):
			return unsure, err
		}
		return notSent, err
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
	left, err := strconv.ParseInt(cmd.Val(), 10, 64)
	if err != nil {
		return faulty, notInteger(cmd.Val())
	}
	if left < units {
		return notEnough, nil
	}
	return taken, nil
}

// notInteger says what stands where a number belongs. It is as good as Redis' own word.
type notInteger string

func (n notInteger) Error() string { return strconv.Quote(string(n)) + " is not an integer" }
func (notInteger) RedisError()     {}

func (w *watch) giveBack(ctx context.Context, orders []*order) {
	cmds := make([]redis.Cmder, len(orders))
	for i, o := range orders {
		cmds[i] = redis.NewIntCmd(ctx, "incrby", w.stock.of(o, w.parts), o.quantity)
	}
	_ = w.send(ctx, cmds) // each command has its own error
	for i, o := range orders {
		o.given = taken
		if err := cmds[i].Err(); err != nil {
			o.given, o.err = fail(err), err
		}
	}
}
