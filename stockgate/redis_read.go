package stockgate

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/layout"
)

// Read reads skus in one pipeline. Where a hash is missing or has none of the layout's fields a second
// one asks which, so that a misspelt field is a fault and not an unknown SKU.
func (r *Redis) Read(ctx context.Context, skus []string, out []layout.Reading) error {
	if len(skus) == 0 {
		return nil
	}
	each := r.layout.Commands()
	err := r.call(ctx, read, each*len(skus), func(ctx context.Context, c *redis.Client) error {
		pipe := c.Pipeline()
		for _, sku := range skus {
			r.layout.Queue(ctx, pipe, sku)
		}
		answers, err := exec(ctx, pipe)
		if err != nil {
			return fmt.Errorf("read stock: %w", err)
		}
		for i, sku := range skus {
			out[i] = r.layout.Read(sku, answers[i*each:(i+1)*each])
		}
		return nil
	})
	if err != nil || !r.layout.IsHash() {
		return err
	}
	return r.doubt(ctx, skus, out)
}

// doubt turns the readings of hashes that exist, but without any field of the layout, into faults.
func (r *Redis) doubt(ctx context.Context, skus []string, out []layout.Reading) error {
	var missing []int
	for i := range skus {
		if !out[i].Exists && out[i].Fault == nil {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return r.call(ctx, read, len(missing), func(ctx context.Context, c *redis.Client) error {
		pipe := c.Pipeline()
		for _, i := range missing {
			pipe.Exists(ctx, r.layout.Key(skus[i]))
		}
		answers, err := exec(ctx, pipe)
		if err != nil {
			return fmt.Errorf("read stock: %w", err)
		}
		for k, i := range missing {
			if answers[k].(*redis.IntCmd).Val() > 0 {
				out[i] = layout.Reading{Fault: fmt.Errorf("read %q: the hash has none of the layout's fields", r.layout.Key(skus[i]))}
			}
		}
		return nil
	})
}

// exec runs a pipeline. Its error is about Redis; what is wrong with a single key stays in its answer.
func exec(ctx context.Context, pipe redis.Pipeliner) ([]redis.Cmder, error) {
	answers, err := pipe.Exec(ctx)
	if err == nil {
		return answers, nil
	}
	for _, a := range answers {
		if err := a.Err(); err != nil && !ofKey(err) {
			return nil, err
		}
	}
	return answers, nil
}

// ofKey reports whether err is about a key. All other errors, LOADING or NOAUTH as well as a lost connection,
// are Redis' own.
func ofKey(err error) bool {
	return errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE")
}
