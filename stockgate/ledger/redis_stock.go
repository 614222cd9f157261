package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Sweep implements Store.
func (r *Redis) Sweep(ctx context.Context, sku string, now, lease int64, limit int) ([]Record, error) {
	if err := errors.Join(checkSweep(sku, limit), checkTimes(now, lease)); err != nil {
		return nil, fmt.Errorf("sweep %q: %w", sku, err)
	}
	reply, err := r.run(ctx, "sweep", sku, r.events, now, lease, limit, forgotten)
	if err != nil {
		return nil, fmt.Errorf("sweep %q: %w", sku, err)
	}
	records := make([]Record, 0, len(reply)/2)
	for i := 0; i+1 < len(reply); i += 2 {
		record, err := decode(fmt.Sprint(reply[i]), fmt.Sprint(reply[i+1]))
		if err != nil {
			return nil, fmt.Errorf("sweep %q: %w", sku, err)
		}
		records = append(records, record)
	}
	return records, nil
}

// Find implements Store.
func (r *Redis) Find(ctx context.Context, sku, serial string) (record Record, ok bool, err error) {
	if err := errors.Join(checkSKU(sku), checkSerial(serial)); err != nil {
		return Record{}, false, fmt.Errorf("find %q: %w", serial, err)
	}
	var text string
	err = r.at(sku).Do(ctx, func(ctx context.Context, c *redis.Client) error {
		text, err = c.HGet(ctx, keys(sku)[1], serial).Result()
		if ok = err == nil; errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	}, fault)
	if err == nil && ok {
		record, err = decode(serial, text)
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("find %q: %w", serial, err)
	}
	return record, ok, nil
}

// Look implements Store.
func (r *Redis) Look(ctx context.Context, sku string) (s Stock, ok bool, err error) {
	if err := checkSKU(sku); err != nil {
		return Stock{}, false, fmt.Errorf("look at %q: %w", sku, err)
	}
	reply, err := r.ask(ctx, &errand{script: "look", sku: sku, aside: true})
	switch _, lost := r.gone(sku); {
	case err != nil:
	case reply != nil:
		s, _, err = stockOf(reply)
	case lost:
		err = ErrLost
	}
	if err != nil {
		return Stock{}, false, fmt.Errorf("look at %q: %w", sku, err)
	}
	return s, reply != nil, nil
}

// SetTotal implements Store.
func (r *Redis) SetTotal(ctx context.Context, sku string, total, limit int64) (Stock, error) {
	if err := checkTotal(sku, total, limit); err != nil {
		return Stock{}, fmt.Errorf("set total of %q: %w", sku, err)
	}
	if limit != KeepLimit {
		if err := r.register(ctx, sku); err != nil {
			return Stock{}, fmt.Errorf("set total of %q: %w", sku, err)
		}
	}
	reply, err := r.run(ctx, "set_total", sku, r.events, total, limit)
	if err == nil && reply == nil {
		err = ErrUnknownSKU
	}
	if err != nil {
		return Stock{}, fmt.Errorf("set total of %q: %w", sku, err)
	}
	s, found, err := stockOf(reply)
	if err == nil && found == refused {
		err = tooFew(total, s.Held, s.Sold)
	}
	if err != nil {
		return s, fmt.Errorf("set total of %q: %w", sku, err)
	}
	return s, nil
}

// SetState implements Store.
func (r *Redis) SetState(ctx context.Context, sku string, state State) (Stock, error) {
	if err := errors.Join(checkSKU(sku), checkState(state)); err != nil {
		return Stock{}, fmt.Errorf("set state of %q: %w", sku, err)
	}
	reply, err := r.run(ctx, "set_state", sku, r.events, string(state))
	if err == nil && reply == nil {
		err = ErrUnknownSKU
	}
	if err != nil {
		return Stock{}, fmt.Errorf("set state of %q: %w", sku, err)
	}
	s, _, err := stockOf(reply)
	if err != nil {
		return Stock{}, fmt.Errorf("set state of %q: %w", sku, err)
	}
	return s, nil
}
