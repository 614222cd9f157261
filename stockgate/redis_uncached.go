package stockgate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

// ReadUncached reads skus by one MGET, where one string is all that the shop keeps of a SKU and all of them are on one
// server; by Read otherwise. What MGET finds missing is read by itself, since it may be a key of another type, and all
// are where Redis rejects, since it may be about one key alone: so what is wrong is said in the words of Read.
func (r *Redis) ReadUncached(ctx context.Context, skus []string, out []layout.Reading) error {
	l := r.layout.Load()
	if len(skus) < 2 || !l.Together() || !allFit(l, skus) || r.apart.Load() || r.scattered(ctx) {
		return r.Read(ctx, skus, out)
	}
	values, rejection, err := r.together(ctx, l, skus)
	switch {
	case err != nil:
		return err
	case rejection != nil:
		r.learnApart(rejection)
		return r.Read(ctx, skus, out)
	case len(values) != len(skus): // by what stands before Redis: their order is unknown
		return r.Read(ctx, skus, out)
	}
	var missing []int
	for i, value := range values {
		if text, there := value.(string); there {
			out[i] = l.ReadString(skus[i], text)
		} else {
			missing = append(missing, i)
		}
	}
	return r.readSome(ctx, skus, missing, out)
}

// scattered reports whether the keys of SKUs may be on several servers, or it is unknown.
func (r *Redis) scattered(ctx context.Context) bool {
	topology, err := r.link.Topology(ctx)
	return err != nil || topology == redisconn.Cluster
}

// together asks for the strings of skus, nil for what is not there. A rejection is Redis' own word, and counts neither
// for nor against it: Read hears the same.
func (r *Redis) together(ctx context.Context, l *layout.Layout, skus []string) (values []any, rejection, err error) {
	keys, args := make([]string, len(skus)), make([]any, 1, 1+len(skus))
	args[0] = "mget"
	for i, sku := range skus {
		keys[i] = l.Key(sku)
		args = append(args, &keys[i]) // a string would be copied
	}
	err = r.callReading(ctx, keys[0], func(ctx context.Context, c redisconn.Commands) error {
		cmd := redis.NewSliceCmd(ctx, args...)
		_ = c.Process(ctx, cmd)
		var err error
		values, err = cmd.Result()
		var reply redis.Error
		if errors.As(err, &reply) {
			rejection, err = err, nil
		}
		if err != nil {
			return fmt.Errorf("read stock: %w", err)
		}
		return nil
	})
	return values, rejection, err
}

// learnApart keeps in mind, and tells once, that MGET is not to be had: denied to this user, or unknown to what stands
// before Redis. A rejection that is about something else may be another one next time.
func (r *Redis) learnApart(rejection error) {
	denied := redis.HasErrorPrefix(rejection, "NOPERM") && strings.Contains(rejection.Error(), "'mget'")
	if (denied || redis.HasErrorPrefix(rejection, noCommand)) && !r.apart.Swap(true) {
		r.log.Warn("redis runs no mget for this user: the stock of each SKU is read by a command of its own, which costs "+
			"Redis and the gate more", "err", rejection)
	}
}
