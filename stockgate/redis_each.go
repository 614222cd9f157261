package stockgate

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

// each asks about many SKUs: one round trip of a number of commands a SKU to each server that has some of them. ask
// gets their positions, and may be called again for some. The errors come back by position; nil = there is none.
func (r *Redis) each(ctx context.Context, op operation, commands int, skus []string,
	ask func(context.Context, redisconn.Commands, []int) error) []error {
	if err := r.Fit(ctx); err != nil {
		errs := make([]error, len(skus))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	l, keys := r.layout.Load(), make([]string, len(skus))
	for i, sku := range skus {
		keys[i] = l.Key(sku)
	}
	asked := func(ctx context.Context, c redisconn.Commands, which []int) error {
		return r.timed(op, commands*len(which), func() error { return ask(ctx, c, which) })
	}
	counted := func(err error) error { return lost(op, err) }
	if op == read {
		if from := r.replicas.pick(ctx); from != nil {
			errs := from.link.Each(ctx, keys, asked, counted)
			if errs == nil || !from.gone(errs[0]) {
				return errs
			}
		}
	}
	errs := r.link.Each(ctx, keys, asked, counted)
	for _, err := range errs {
		if errors.Is(err, redisconn.ErrBreakerOpen) {
			r.metrics.errors[leftAlone].Add(1)
			break
		}
	}
	return errs
}

// spread makes the errors of some SKUs their readings' faults. When nothing at all was learnt it returns why.
func spread(errs []error, out []layout.Reading) error {
	if errs == nil {
		return nil
	}
	failed, last := 0, error(nil)
	for _, err := range errs {
		if err != nil {
			failed, last = failed+1, err
		}
	}
	if failed == len(errs) {
		return last
	}
	for i, err := range errs {
		if err != nil {
			out[i] = layout.Reading{Fault: err}
		}
	}
	return nil
}

// learn is spread, and takes a cluster for lost only where no master of it answers: else the faults are those of the
// SKUs that were asked for, and the SKUs of other masters are sold on.
func (r *Redis) learn(ctx context.Context, errs []error, out []layout.Reading) error {
	err := spread(errs, out)
	if err == nil || !r.scattered(ctx) || r.Ping(ctx) != nil {
		return err
	}
	for i, err := range errs {
		out[i] = layout.Reading{Fault: err}
	}
	return nil
}

// anyOf reports whether one of errs is Redis' own, with this beginning.
func anyOf(errs []error, prefix string) bool {
	for _, err := range errs {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}
