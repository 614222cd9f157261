package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/periodic"
	"sluice/stockgate/redisconn"
)

// registryKey is the key of the SKUs that may have a ledger: a sorted set by name. It lies in a slot of its own, so it
// cannot be written together with a ledger; it is written before, so that no ledger is missing there.
func registryKey(n redisconn.Name) string { return n.Key("skus") }

// What one call to Redis reads at most, about.
const (
	listPage    = 500
	recordsPage = 1000
)

// register notes that SKUs may get a ledger, or had one. It reports whether the registry did not know one before: a
// known SKU without a ledger has lost it, or a call failed before it made one, which is taken for the same.
func (r *Store) register(ctx context.Context, skus ...string) (fresh bool, err error) {
	registry, members := registryKey(r.name), make([]redis.Z, len(skus))
	for i, sku := range skus {
		members[i].Member = sku
	}
	err = r.link.To(registry).Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
		added, err := c.ZAdd(ctx, registry, members...).Result()
		if err != nil {
			return fmt.Errorf("register: %w", err)
		}
		fresh = added > 0
		return nil
	}, storeFault)
	return fresh, err
}

// registered reports by position which SKUs the registry knows.
func (r *Store) registered(ctx context.Context, skus ...string) (known []bool, err error) {
	registry := registryKey(r.name)
	err = r.link.To(registry).Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
		pipe, places := c.Pipeline(), make([]*redis.FloatCmd, len(skus))
		for i, sku := range skus {
			places[i] = pipe.ZScore(ctx, registry, sku)
		}
		_, _ = pipe.Exec(ctx) // the errors are the commands' own
		known = make([]bool, len(skus))
		for i, place := range places {
			if err := place.Err(); err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			known[i] = place.Err() == nil
		}
		return nil
	}, storeFault)
	return known, err
}

// noLedger is the error of a call that has found no ledger: ErrLost where there was one, as far as this
// instance or the registry knows.
func (r *Store) noLedger(ctx context.Context, sku string) error {
	known, err := []bool{r.Seen.Find(sku) != nil}, error(nil)
	if !known[0] {
		known, err = r.registered(ctx, sku)
	}
	switch {
	case err != nil:
		return err
	case known[0]:
		return LostLedger(sku)
	}
	return ErrUnknownSKU
}

// Between the name of a SKU and its ledger is one round trip of another call.
const (
	makeTries = 20
	makePause = 50 * time.Millisecond
)

// makeLedger runs a script that makes a ledger where there is none. Of a SKU that was known before the ledger is lost,
// unless another call has just named it and makes it now.
func (r *Store) makeLedger(ctx context.Context, script, sku string, args ...any) (reply []any, err error) {
	fresh, err := r.register(ctx, sku)
	fresh = fresh && r.Seen.Find(sku) == nil
	for try := 1; err == nil; try++ {
		seen := r.Seen.Find(sku) != nil // before the call: during it, another may make the ledger
		if reply, err = r.callScript(ctx, script, sku, append(args, fresh)...); reply != nil || err != nil {
			break
		}
		if fresh || seen || try == makeTries {
			return nil, r.noLedger(ctx, sku)
		}
		if !periodic.Pause(ctx, makePause) {
			return nil, ctx.Err()
		}
	}
	return reply, err
}

// noteLost has the registry know a SKU whose ledger this instance has seen and misses: after a FLUSHALL no command may
// make it as if it had never been.
func (r *Store) noteLost(sku string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.instance == "" || r.away.Err() != nil {
		return
	}
	r.visits.Go(func() {
		for {
			if _, err := r.register(r.away, sku); err == nil || !periodic.Pause(r.away, registerRetry) {
				return
			}
		}
	})
}

const registerRetry = 100 * time.Millisecond

// NoteLost has the registry know all SKUs whose ledgers this instance has seen, besides those that SKUs has just
// listed: one that it lacks is not settled, and one whose ledger is gone could be made as if it had never been. It is
// called repeatedly: Redis may lose the registry more than once, and in a cluster without any ledger.
func (r *Store) NoteLost(ctx context.Context, listed []string) error {
	seen := slices.DeleteFunc(r.Seen.SKUs(), func(sku string) bool {
		_, known := slices.BinarySearch(listed, sku)
		return known
	})
	for some := range slices.Chunk(seen, listPage) {
		if _, err := r.register(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}

// SKUs returns the first SKUs that have a ledger, in the order of their bytes. limit is 1 to 100,000. Names whose
// ledger is gone, or was never made, are passed over and kept: to drop one could hide a ledger that is being made.
func (r *Store) SKUs(ctx context.Context, limit int) ([]string, error) {
	return r.listSKUs(ctx, limit, true)
}

// LostSKUs returns at most limit names whose ledger is gone, or was never made.
func (r *Store) LostSKUs(ctx context.Context, limit int) ([]string, error) {
	return r.listSKUs(ctx, limit, false)
}

// listSKUs returns the names that have a ledger, or those that have none.
func (r *Store) listSKUs(ctx context.Context, limit int, has bool) (all []string, err error) {
	if err := checkList(limit); err != nil {
		return nil, fmt.Errorf("list skus: %w", err)
	}
	for after := "-"; len(all) < limit; {
		names, err := r.listNames(ctx, after, listPage)
		if err == nil && len(names) > 0 {
			after = "(" + names[len(names)-1]
			all, err = r.appendIf(ctx, all, names, has)
		}
		if err != nil {
			return nil, fmt.Errorf("list skus: %w", err)
		}
		if len(names) == 0 {
			return all, nil
		}
	}
	return all[:limit], nil
}

// listNames reads the registry on from a name.
func (r *Store) listNames(ctx context.Context, after string, count int64) (names []string, err error) {
	registry := registryKey(r.name)
	err = r.link.To(registry).Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
		names, err = c.ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: registry, Start: after, Stop: "+", ByLex: true, Count: count,
		}).Result()
		return err
	}, storeFault)
	return names, err
}

// appendIf appends to all those of names that have a ledger, or those that have none.
func (r *Store) appendIf(ctx context.Context, all, names []string, has bool) ([]string, error) {
	found, at := make([]int64, len(names)), make([]string, len(names))
	for i, name := range names {
		at[i] = r.home(name)
	}
	errs := r.link.Each(ctx, at, func(ctx context.Context, c redisconn.Commands, which []int) error {
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
	}, storeFault)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i, name := range names {
		if (found[i] > 0) == has {
			all = append(all, name)
		}
	}
	return all, nil
}

// Records shows see the records of a SKU until it returns false: each that is there during the whole call, and perhaps
// others that came or went meanwhile; in no order, one of them perhaps more than once. There are at most as many as
// units in all, and tombstones. see must not call the store. It reads about a thousand in a step, so that Redis is
// never busy for long.
func (r *Store) Records(ctx context.Context, sku string, see func(Record) bool) (err error) {
	defer describe(&err, "list records of", sku)
	if err := CheckSKU(sku); err != nil {
		return err
	}
	return r.at(sku).Scan(ctx, func(ctx context.Context, c redisconn.Commands, cursor uint64) *redis.ScanCmd {
		return c.HScan(ctx, r.keys(sku)[1], cursor, "", recordsPage)
	}, func(_ uint64, pairs []string) (bool, error) {
		for i := 0; i+1 < len(pairs); i += 2 {
			record, err := DecodeRecord(pairs[i], pairs[i+1])
			if err != nil || !see(record) {
				return false, err
			}
		}
		return true, nil
	}, storeFault)
}

// settlementKey is the key of what settlers have told last: a hash, with a field for each home.
func settlementKey(n redisconn.Name) string { return n.Key("settlement") }

// NoteSettlement keeps how the settlement of a home stands, as JSON, for the dashboards of gates.
func (r *Store) NoteSettlement(ctx context.Context, home, text string) error {
	key := settlementKey(r.name)
	return r.link.To(key).Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
		return c.HSet(ctx, key, home, text).Err()
	}, storeFault)
}

// Settlements returns what settlers have told last, by home.
func (r *Store) Settlements(ctx context.Context) (all map[string]string, err error) {
	key := settlementKey(r.name)
	err = r.link.To(key).Do(ctx, func(ctx context.Context, c redisconn.Commands) (err error) {
		all, err = c.HGetAll(ctx, key).Result()
		return err
	}, storeFault)
	if err != nil {
		return nil, fmt.Errorf("read what settlers have told: %w", err)
	}
	return all, nil
}
