package ledger

import (
	"context"
	"errors"
	"fmt"

	"sluice/stockgate/redisconn"

	"github.com/redis/go-redis/v9"
)

// Sweep leases at most limit overdue holds until lease, forgets tombstones whose time has come, and returns the
// holds, the oldest first. limit is 1 to 1,000; at most 2,000 tombstones more than that are looked at.
func (r *Store) Sweep(ctx context.Context, sku string, now, lease int64, limit int) (
	holds []Record, err error,
) {
	defer describe(&err, "sweep", sku)
	if err := errors.Join(checkSweep(sku, limit), checkTimes(now, lease)); err != nil {
		return nil, err
	}
	reply, err := r.callScript(ctx, "sweep", sku, r.events, now, lease, limit, maxForgotten)
	if err != nil {
		return nil, err
	}
	swept := sweptOf(reply)
	return swept.Holds, swept.Err
}

// SweepAll sweeps several ledgers at once, at most 64, a little of each: mostly nothing is due. What it finds comes
// back by position. It makes one round trip to each server.
func (r *Store) SweepAll(ctx context.Context, skus []string, now, lease int64) []Swept {
	args := []any{r.events, now, lease, sharedLeases, SharedForgotten}
	all := r.callMany(ctx, skus, func(sku string) scriptCall {
		return scriptCall{
			script: "sweep",
			sku:    sku,
			args:   args,
			err:    errors.Join(checkSweep(sku, sharedLeases), checkTimes(now, lease)),
		}
	})
	swept := make([]Swept, len(all))
	for i := range all {
		q := &all[i]
		if swept[i].Err = q.err; q.err == nil {
			swept[i] = sweptOf(q.answer)
		}
		swept[i].Epoch = r.Seen.Find(q.sku).Claim().Epoch
		describe(&swept[i].Err, "sweep", q.sku)
	}
	return swept
}

// sweptOf reads what sweep.lua says: whether more is due, then serial, record, ... of the holds.
func sweptOf(reply []any) (s Swept) {
	if len(reply) == 0 {
		return s
	}
	s.More = reply[0] == int64(1)
	for i := 1; i+1 < len(reply); i += 2 {
		record, err := DecodeRecord(fmt.Sprint(reply[i]), fmt.Sprint(reply[i+1]))
		if err != nil {
			return Swept{Err: err}
		}
		s.Holds = append(s.Holds, record)
	}
	return s
}

// Find looks a serial up; ok is false for an unknown one.
func (r *Store) Find(ctx context.Context, sku, serial string) (record Record, ok bool, err error) {
	defer describe(&err, "find", serial)
	if err := errors.Join(CheckSKU(sku), CheckSerial(serial)); err != nil {
		return record, false, err
	}
	var text string
	err = r.at(sku).Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
		text, err = c.HGet(ctx, r.keys(sku)[1], serial).Result()
		if ok = err == nil; errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	}, storeFault)
	if err != nil || !ok {
		return record, false, err
	}
	record, err = DecodeRecord(serial, text)
	return record, err == nil, err
}

// ReadStock reads the numbers; ok is false when there is no ledger.
func (r *Store) ReadStock(ctx context.Context, sku string) (s Stock, ok bool, err error) {
	defer describe(&err, "look at", sku)
	s, _, err = r.change(ctx, CheckSKU(sku), &scriptCall{script: "read_stock", sku: sku, aside: true})
	if errors.Is(err, ErrUnknownSKU) {
		return s, false, nil
	}
	return s, err == nil, err
}
