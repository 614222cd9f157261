package stockgate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

// Set writes n units of sku, 0 or more, into the shop's key, and makes that key where there was none: what is
// left, or the total where the shop keeps total and sold. A key of another type is an error and stays whole. Behind a
// script, and for most lists, it is layout.ErrNotWritable.
func (r *Redis) Set(ctx context.Context, sku string, n int64) error {
	if n < 0 {
		return fmt.Errorf("set %q: a stock of %d is negative", sku, n)
	}
	return r.call(ctx, r.at(sku), set, func(ctx context.Context, c redisconn.Commands) error {
		if err := r.layout.Load().Set(ctx, c, sku, n); err != nil {
			return fmt.Errorf("set %q: %w", r.layout.Load().Key(sku), err)
		}
		return nil
	})
}

// Add changes the stock of sku by delta, which may be negative, and returns what is left then. A SKU without
// a key is ErrUnknownSKU. After any other error it is unknown whether it was done.
func (r *Redis) Add(ctx context.Context, sku string, delta int64) (left int64, err error) {
	exists := false
	err = r.call(ctx, r.at(sku), add, func(ctx context.Context, c redisconn.Commands) (err error) {
		if left, exists, err = r.layout.Load().Add(ctx, c, sku, delta); err != nil {
			return fmt.Errorf("add to %q: %w", r.layout.Load().Key(sku), err)
		}
		return nil
	})
	if err == nil && !exists {
		err = fmt.Errorf("add to %q: %w", r.layout.Load().Key(sku), ErrUnknownSKU)
	}
	return left, err
}

// scans bounds List: so many steps of some 1,000 keys each.
const scans = 1000

// List finds at most limit SKUs by their keys and returns them with their stock, by name. It walks the whole
// key space step by step, a million keys of each server at most: meant for a person who asks, not for every second.
func (r *Redis) List(ctx context.Context, limit int) ([]Stock, error) {
	servers, err := r.link.Servers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list stock: %w", err)
	}
	var all []Stock
	seen := make(map[string]bool)
	for _, server := range servers {
		if all, err = r.listOn(ctx, server, all, limit, seen); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, bySKU)
	return all[:max(0, min(limit, len(all)))], nil
}

// listOn adds what one server has to all, until that is enough.
func (r *Redis) listOn(ctx context.Context, server redisconn.Route, all []Stock, limit int,
	seen map[string]bool) ([]Stock,
	error) {
	cursor := uint64(0)
	for range scans {
		if len(all) >= limit {
			break
		}
		skus, next, err := r.scan(ctx, server, cursor, seen)
		if err != nil {
			return nil, err
		}
		for chunk := range slices.Chunk(skus, readAtOnce) {
			if all, err = r.measure(ctx, all, chunk); err != nil {
				return nil, err
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	return all, nil
}

// scan takes one step through the key space of a server and returns the SKUs that it found for the first time.
func (r *Redis) scan(ctx context.Context, server redisconn.Route, cursor uint64, seen map[string]bool) (skus []string,
	next uint64, err error) {
	err = r.call(ctx, server, list, func(ctx context.Context, c redisconn.Commands) (err error) {
		var keys []string
		if keys, next, err = c.Scan(ctx, cursor, r.layout.Load().Pattern(), 1000).Result(); err != nil {
			return fmt.Errorf("list stock: %w", err)
		}
		for _, key := range keys {
			for _, sku := range r.skusOf(ctx, c, key) {
				if !seen[sku] {
					seen[sku] = true
					skus = append(skus, sku)
				}
			}
		}
		return nil
	})
	return skus, next, err
}

// skusOf are the SKUs whose stock is in a key: several of a hash that they share. A key that is no such hash has none.
func (r *Redis) skusOf(ctx context.Context, c redisconn.Commands, key string) (skus []string) {
	l := r.layout.Load()
	if !l.SharesHash() {
		if sku, ok := l.SKU(key); ok {
			skus = append(skus, sku)
		}
		return skus
	}
	fields, _ := c.HKeys(ctx, key).Result()
	for _, field := range fields {
		if sku, ok := l.SKUOfField(key, field); ok {
			skus = append(skus, sku)
		}
	}
	return skus
}

// measure adds the stock of skus to all.
func (r *Redis) measure(ctx context.Context, all []Stock, skus []string) ([]Stock, error) {
	readings := make([]layout.Reading, len(skus))
	if err := r.Read(ctx, skus, readings); err != nil {
		return nil, err
	}
	for i, sku := range skus {
		if readings[i].Exists || readings[i].Fault != nil {
			all = append(all, Stock{sku, readings[i]})
		}
	}
	return all, nil
}

// Mirror makes the shop's own key of sku show how many units a ledger has free, as of a version of it. It reports false
// where the key shows a later version already. After an error it is unknown whether it was written, and the same call
// finds out.
func (r *Redis) Mirror(ctx context.Context, sku string, free, epoch, ver int64) (written bool, err error) {
	err = r.call(ctx, r.at(sku), set, func(ctx context.Context, c redisconn.Commands) error {
		written, err = r.layout.Load().Mirror(ctx, c, sku, free, epoch, ver)
		return err
	})
	return written, err
}

// Fill writes the stock of sku where the shop has none of it yet, once for each sale: see layout.Fill.
func (r *Redis) Fill(ctx context.Context, sku string, f layout.Filling) (done layout.Filled, err error) {
	err = r.call(ctx, r.at(sku), set, func(ctx context.Context, c redisconn.Commands) error {
		done, err = r.layout.Load().Fill(ctx, c, sku, f)
		return err
	})
	return done, err
}

// HasStatus reports whether the shop has a status of SKUs.
func (r *Redis) HasStatus() bool { return r.layout.Load().HasStatus() }

// SharesStatus reports whether that is one for all SKUs.
func (r *Redis) SharesStatus() bool { return r.layout.Load().SharesStatus() }

// SetStatus writes whether sku is on sale: see layout.SetStatus.
func (r *Redis) SetStatus(ctx context.Context, sku string, want layout.StatusChange) (m layout.StatusMark, err error) {
	l := r.layout.Load()
	err = r.call(ctx, r.link.To(l.StatusKey(sku)), set, func(ctx context.Context, c redisconn.Commands) error {
		m, err = l.SetStatus(ctx, c, sku, want)
		return err
	})
	return m, err
}

func bySKU(a, b Stock) int { return strings.Compare(a.SKU, b.SKU) }
