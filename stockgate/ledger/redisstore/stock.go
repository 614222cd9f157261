package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/ledger/protocol"
)

// Sweep implements Store.
func (r *Store) Sweep(ctx context.Context, sku string, now, lease int64, limit int) ([]protocol.Record, error) {
	if err := errors.Join(protocol.CheckSweep(sku, limit), protocol.CheckTimes(now, lease)); err != nil {
		return nil, fmt.Errorf("sweep %q: %w", sku, err)
	}
	reply, err := r.callScript(ctx, "sweep", sku, r.events, now, lease, limit, protocol.MaxForgotten)
	if err != nil {
		return nil, fmt.Errorf("sweep %q: %w", sku, err)
	}
	swept := sweptOf(sku, reply)
	return swept.Holds, swept.Err
}

// SweepAll implements Store, in one round trip to each server.
func (r *Store) SweepAll(ctx context.Context, skus []string, now, lease int64) []protocol.Swept {
	args := []any{r.events, now, lease, protocol.SharedLeases, protocol.SharedForgotten}
	all := r.callMany(ctx, skus, func(sku string) scriptCall {
		return scriptCall{
			script: "sweep",
			sku:    sku,
			args:   args,
			err:    errors.Join(protocol.CheckSweep(sku, protocol.SharedLeases), protocol.CheckTimes(now, lease)),
		}
	})
	swept := make([]protocol.Swept, len(all))
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
func sweptOf(sku string, reply []any) (s protocol.Swept) {
	if len(reply) == 0 {
		return s
	}
	s.More = reply[0] == int64(1)
	for i := 1; i+1 < len(reply); i += 2 {
		record, err := protocol.DecodeRecord(fmt.Sprint(reply[i]), fmt.Sprint(reply[i+1]))
		if err != nil {
			return protocol.Swept{Err: fmt.Errorf("sweep %q: %w", sku, err)}
		}
		s.Holds = append(s.Holds, record)
	}
	return s
}

// Find implements Store.
func (r *Store) Find(ctx context.Context, sku, serial string) (record protocol.Record, ok bool, err error) {
	if err := errors.Join(protocol.CheckSKU(sku), protocol.CheckSerial(serial)); err != nil {
		return protocol.Record{}, false, fmt.Errorf("find %q: %w", serial, err)
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
		record, err = protocol.DecodeRecord(serial, text)
	}
	if err != nil {
		return protocol.Record{}, false, fmt.Errorf("find %q: %w", serial, err)
	}
	return record, ok, nil
}

// ReadStock implements Store.
func (r *Store) ReadStock(ctx context.Context, sku string) (s protocol.Stock, ok bool, err error) {
	if err := protocol.CheckSKU(sku); err != nil {
		return protocol.Stock{}, false, fmt.Errorf("look at %q: %w", sku, err)
	}
	reply, err := r.call(ctx, &scriptCall{script: "read_stock", sku: sku, aside: true})
	switch {
	case err != nil:
	case reply != nil:
		s, _, err = stockOf(reply)
	default:
		if err = r.noLedger(ctx, sku); errors.Is(err, protocol.ErrUnknownSKU) {
			err = nil
		}
	}
	if err != nil {
		return protocol.Stock{}, false, fmt.Errorf("look at %q: %w", sku, err)
	}
	return s, reply != nil, nil
}

// SetTotal implements Store.
func (r *Store) SetTotal(ctx context.Context, sku string, total, limit int64) (protocol.Stock, error) {
	err := protocol.CheckTotal(sku, total, limit)
	var reply []any
	switch {
	case err != nil:
	case limit != protocol.KeepLimit:
		reply, err = r.makeLedger(ctx, "set_total", sku, r.events, total, limit)
	default:
		if reply, err = r.callScript(ctx, "set_total", sku, r.events, total, limit, false); err == nil && reply == nil {
			err = r.noLedger(ctx, sku)
		}
	}
	if err != nil {
		return protocol.Stock{}, fmt.Errorf("set total of %q: %w", sku, err)
	}
	s, found, err := stockOf(reply)
	if err == nil && found == rejected {
		err = protocol.TotalTooSmall(total, s.Held, s.Sold)
	}
	if err != nil {
		return s, fmt.Errorf("set total of %q: %w", sku, err)
	}
	return s, nil
}

// Recreate implements protocol.Recreator.
func (r *Store) Recreate(ctx context.Context, sku string, total, limit int64, none bool) (s protocol.Stock, err error) {
	if limit == protocol.KeepLimit {
		err = errors.New("how many a person may have is not said")
	}
	if err = errors.Join(err, protocol.CheckTotal(sku, total, limit)); err == nil {
		_, err = r.register(ctx, sku)
	}
	var reply []any
	if err == nil {
		q := scriptCall{script: "recreate", sku: sku, args: []any{r.events, total, limit, none}, aside: true,
			more: queueKeys(sku)}
		reply, err = r.call(ctx, &q)
	}
	var found int64
	switch {
	case err != nil:
	case len(reply) == 1:
		err = fmt.Errorf("%w, %v of them: adopt those that the upstream has (--adopt FILE)", protocol.ErrOrdersLeft, reply[0])
	default:
		if s, found, err = stockOf(reply); err == nil && found == rejected {
			err = fmt.Errorf("%w: to adopt orders into it, use sluice stock freeze, adopt and thaw", protocol.ErrExists)
		}
	}
	if err != nil {
		return s, fmt.Errorf("recreate %q: %w", sku, err)
	}
	return s, nil
}

// Overrule implements protocol.Overruler.
func (r *Store) Overrule(ctx context.Context, sku string, state protocol.State, number int64) (
	s protocol.Stock, before protocol.State, inForce bool, err error,
) {
	if state != protocol.Paused && state != protocol.Ended {
		return s, "", false, fmt.Errorf("overrule %q: it cannot be %q for a while", sku, state)
	}
	return r.overrule(ctx, sku, state, number)
}

// Reinstate implements protocol.Overruler.
func (r *Store) Reinstate(ctx context.Context, sku string, number int64) (protocol.Stock, error) {
	s, _, _, err := r.overrule(ctx, sku, "", number)
	return s, err
}

func (r *Store) overrule(ctx context.Context, sku string, state protocol.State, number int64) (
	s protocol.Stock, before protocol.State, inForce bool, err error,
) {
	var reply []any
	if err = errors.Join(protocol.CheckSKU(sku), protocol.CheckOverruling(number)); err == nil {
		reply, err = r.callScript(ctx, "overrule", sku, r.events, number, string(state))
	}
	if err == nil && reply == nil {
		err = r.noLedger(ctx, sku)
	}
	var found int64
	if err == nil && len(reply) == stockSize+1 {
		before = protocol.State(fmt.Sprint(reply[stockSize]))
		s, found, err = stockOf(reply[:stockSize])
	} else if err == nil {
		err = fmt.Errorf("%d values came back", len(reply))
	}
	if err != nil {
		return protocol.Stock{}, "", false, fmt.Errorf("overrule %q: %w", sku, err)
	}
	return s, before, found == done, nil
}

// SetState implements Store.
func (r *Store) SetState(ctx context.Context, sku string, state protocol.State) (protocol.Stock, error) {
	if err := errors.Join(protocol.CheckSKU(sku), protocol.CheckState(state)); err != nil {
		return protocol.Stock{}, fmt.Errorf("set state of %q: %w", sku, err)
	}
	reply, err := r.callScript(ctx, "set_state", sku, r.events, string(state))
	if err == nil && reply == nil {
		err = r.noLedger(ctx, sku)
	}
	if err != nil {
		return protocol.Stock{}, fmt.Errorf("set state of %q: %w", sku, err)
	}
	s, _, err := stockOf(reply)
	if err != nil {
		return protocol.Stock{}, fmt.Errorf("set state of %q: %w", sku, err)
	}
	return s, nil
}
