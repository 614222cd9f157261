package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/ledger/protocol"
)

// registryKey is the key of the SKUs that may have a ledger: a sorted set by name. It lies in a slot of its own, so it
// cannot be written together with a ledger; it is written before, so that no ledger is missing there.
const registryKey = "sluice:skus"

// What one call to Redis reads at most, about.
const (
	listPage    = 500
	recordsPage = 1000
)

// register notes that sku may get a ledger.
func (r *Store) register(ctx context.Context, sku string) error {
	registry := r.prefix + registryKey
	return r.link.To(registry).Do(ctx, func(ctx context.Context, c *redis.Client) error {
		if err := c.ZAdd(ctx, registry, redis.Z{Member: sku}).Err(); err != nil {
			return fmt.Errorf("register: %w", err)
		}
		return nil
	}, fault)
}

// SKUs implements Store. Names whose ledger is gone, or was never made, are passed over and kept: to drop one could
// hide a ledger that is being made.
func (r *Store) SKUs(ctx context.Context, limit int) ([]string, error) {
	if err := protocol.CheckList(limit); err != nil {
		return nil, fmt.Errorf("list skus: %w", err)
	}
	var all []string
	for after := "-"; len(all) < limit; {
		names, err := r.listNames(ctx, after)
		if err != nil {
			return nil, fmt.Errorf("list skus: %w", err)
		}
		if len(names) == 0 {
			return all, nil
		}
		after = "(" + names[len(names)-1]
		if all, err = r.withLedger(ctx, all, names); err != nil {
			return nil, fmt.Errorf("list skus: %w", err)
		}
	}
	return all[:limit], nil
}

// listNames reads the registry on from a name.
func (r *Store) listNames(ctx context.Context, after string) (names []string, err error) {
	registry := r.prefix + registryKey
	err = r.link.To(registry).Do(ctx, func(ctx context.Context, c *redis.Client) error {
		names, err = c.ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: registry, Start: after, Stop: "+", ByLex: true, Count: listPage,
		}).Result()
		return err
	}, fault)
	return names, err
}

// withLedger appends to all those of names that have a ledger.
func (r *Store) withLedger(ctx context.Context, all, names []string) ([]string, error) {
	found, at := make([]int64, len(names)), make([]string, len(names))
	for i, name := range names {
		at[i] = keys(name)[0]
	}
	errs := r.link.Each(ctx, at, func(ctx context.Context, c *redis.Client, which []int) error {
		pipe := c.Pipeline()
		answers := make([]*redis.IntCmd, len(which))
		for i, k := range which {
			answers[i] = pipe.Exists(ctx, at[k])
		}
		_, err := pipe.Exec(ctx)
		for i, k := range which {
			found[k] = answers[i].Val()
		}
		return err
	}, fault)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i, name := range names {
		if found[i] > 0 {
			all = append(all, name)
		}
	}
	return all, nil
}

// Records implements Store, in steps of about a thousand records, so that Redis is never busy for long.
func (r *Store) Records(ctx context.Context, sku string, see func(protocol.Record) bool) error {
	if err := protocol.CheckSKU(sku); err != nil {
		return fmt.Errorf("list records of %q: %w", sku, err)
	}
	for cursor := uint64(0); ; {
		pairs, next, err := r.page(ctx, sku, cursor)
		if err != nil {
			return fmt.Errorf("list records of %q: %w", sku, err)
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			record, err := protocol.DecodeRecord(pairs[i], pairs[i+1])
			if err != nil {
				return fmt.Errorf("list records of %q: %w", sku, err)
			}
			if !see(record) {
				return nil
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// page reads some records, and where to go on; 0 = nowhere.
func (r *Store) page(ctx context.Context, sku string, cursor uint64) (pairs []string, next uint64, err error) {
	err = r.at(sku).Do(ctx, func(ctx context.Context, c *redis.Client) error {
		pairs, next, err = c.HScan(ctx, keys(sku)[1], cursor, "", recordsPage).Result()
		return err
	}, fault)
	return pairs, next, err
}
