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
	swept := sweptOf(sku, reply)
	return swept.Holds, swept.Err
}

// SweepAll implements Store, in one round trip to each server.
func (r *Redis) SweepAll(ctx context.Context, skus []string, now, lease int64) []Swept {
	args := []any{r.events, now, lease, fewLeases, fewForgotten}
	all := r.askAll(ctx, skus, func(sku string) errand {
		return errand{script: "sweep", sku: sku, args: args, err: errors.Join(checkSweep(sku, fewLeases), checkTimes(now, lease))}
	}, nil)
	swept := make([]Swept, len(all))
	for i := range all {
		if q := &all[i]; q.err != nil {
			swept[i].Err = fmt.Errorf("sweep %q: %w", q.sku, q.err)
		} else {
			swept[i] = sweptOf(q.sku, q.answer)
		}
	}
	return swept
}

// sweptOf reads what sweep.lua says: whether more is due, then serial, record, ... of the holds.
func sweptOf(sku string, reply []any) (s Swept) {
	if len(reply) == 0 {
		return s
	}
	s.More = reply[0] == int64(1)
	for i := 1; i+1 < len(reply); i += 2 {
		record, err := decode(fmt.Sprint(reply[i]), fmt.Sprint(reply[i+1]))
		if err != nil {
			return Swept{Err: fmt.Errorf("sweep %q: %w", sku, err)}
		}
		s.Holds = append(s.Holds, record)
	}
	return s
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

// LookAll implements Store, in one round trip to each server. It waits for no server to tell what another one has said.
func (r *Redis) LookAll(ctx context.Context, skus []string, tell func(int, Hint, bool, error)) {
	r.askAll(ctx, skus, func(sku string) errand {
		return errand{script: "visit", sku: sku, args: []any{r.events}, err: checkSKU(sku)}
	}, func(i int, q *errand) {
		h, ok, err := r.visited(q)
		tell(i, h, ok, err)
	})
}

// visited reads what visit.lua says.
func (r *Redis) visited(q *errand) (h Hint, ok bool, err error) {
	lost, gone := r.gone(q.sku)
	switch err = q.err; {
	case err != nil:
	case q.answer == nil:
		return lost, gone, nil
	case len(q.answer) != hintSize:
		err = fmt.Errorf("%d values came back for a hint", len(q.answer))
	default:
		h, err = hintOf(q.answer)
	}
	if err != nil {
		return Hint{}, false, fmt.Errorf("look at %q: %w", q.sku, err)
	}
	return h, true, nil
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
