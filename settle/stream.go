package settle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

// What one call to Redis reads at most.
const (
	skusAtOnce    = 500
	recordsAtOnce = 1000
	entriesAtOnce = 100 // of many records each
	maxSKUs       = 100_000
)

// Ledger is how a ledger's hash stands.
type Ledger struct {
	Position
	Numbers
	Born  int64 // 0 = it was made again after it was lost, and goes on with the orders of the one before ...
	first int64 // ... whose first epoch this is, as the home of the SKU has said; 0 = none has
	Limit int64 // units a person; 0 = no limit

	Home  string // where it is settled; "" = no settler has claimed it
	moves int64  // how often
	paid  bool   // it has ended by EndPaid, unless another state was said since

	archived bool // it began when the one before was archived

	remade bool // an operator makes it again, and decides about reservations of before

	server string // that the instances trust: another one may have lost its last changes
}

// continuing is l as the ledger that c is the cursor of, where l goes on with it. A cursor that was left behind may be
// of a sale before.
func (l Ledger) continuing(c *Cursor) Ledger {
	switch {
	case l.Born != 0 || l.Epoch == 0:
	case l.first != 0:
		l.Born, l.remade = l.first, true
	case c != nil && c.State != Moved:
		l.Born, l.remade = c.Born, true
	}
	return l
}

// Stream reads the ledgers of one shop, and their streams, from Redis. It is safe for concurrent use.
type Stream struct {
	Redis *redisconn.Client
	Name  redisconn.Name
}

// registry is the key of the SKUs that may have a ledger.
func (s Stream) registry() string { return s.Name.Key("skus") }

// SKUs returns the SKUs that may have a ledger, sorted, at most 100,000, and how many there are beyond these.
func (s Stream) SKUs(ctx context.Context) (all []string, beyond int64, err error) {
	registry := s.registry()
	for after := "-"; len(all) < maxSKUs; after = "(" + all[len(all)-1] {
		var names []string
		err := s.Redis.To(registry).Do(ctx, func(ctx context.Context, c redisconn.Commands) (err error) {
			names, err = c.ZRangeArgs(ctx, redis.ZRangeArgs{
				Key: registry, Start: after, Stop: "+", ByLex: true, Count: skusAtOnce,
			}).Result()
			return err
		}, redisconn.Unanswered)
		if err != nil {
			return nil, 0, fmt.Errorf("list skus: %w", err)
		}
		if all = append(all, names...); len(names) == 0 {
			return all, 0, nil
		}
	}
	err = s.Redis.To(registry).Do(ctx, func(ctx context.Context, c redisconn.Commands) (err error) {
		beyond, err = c.ZLexCount(ctx, registry, "("+all[len(all)-1], "+").Result()
		return err
	}, redisconn.Unanswered)
	if err != nil {
		return nil, 0, fmt.Errorf("count skus: %w", err)
	}
	return all, beyond, nil
}

// Now is the clock of Redis, by which sales begin and end.
func (s Stream) Now(ctx context.Context) (now time.Time, err error) {
	err = s.Redis.To(s.registry()).Do(ctx, func(ctx context.Context, c redisconn.Commands) (err error) {
		now, err = c.Time(ctx).Result()
		return err
	}, redisconn.Unanswered)
	if err != nil {
		return now, fmt.Errorf("read the clock of redis: %w", err)
	}
	return now, nil
}

// Ledgers reads how some ledgers stand, in one round trip to each server. An SKU without a ledger has the zero Ledger.
func (s Stream) Ledgers(ctx context.Context, skus []string) ([]Ledger, error) {
	all, errs := s.EachLedger(ctx, skus)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return all, nil
}

// EachLedger is Ledgers where one master of a cluster may be away: the errors come back by position; nil when there is
// none at all.
func (s Stream) EachLedger(ctx context.Context, skus []string) ([]Ledger, []error) {
	all, keys := make([]Ledger, len(skus)), make([]string, len(skus))
	for i, sku := range skus {
		keys[i] = s.Name.SKUKey(sku, "s")
	}
	errs := s.Redis.Each(ctx, keys, func(ctx context.Context, c redisconn.Commands, which []int) error {
		pipe := c.Pipeline()
		replies := make([]*redis.SliceCmd, len(which))
		for i, k := range which {
			replies[i] = pipe.HMGet(ctx, keys[k], "epoch", "ver", "born", "total", "held", "sold", "limit", "archived",
				"state", homeField, "paid", "run", firstField)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		for i, k := range which {
			all[k] = ledgerOf(replies[i].Val())
		}
		return nil
	}, redisconn.Unanswered)
	for i, err := range errs {
		if err != nil {
			errs[i] = fmt.Errorf("read ledgers: %w", err)
		}
	}
	return all, errs
}

// Listed is a SKU that may have a ledger.
type Listed struct {
	SKU string
	Ledger
}

// All yields every SKU that may have a ledger, with its ledger or the error of the server that has it. The error of the
// list itself comes alone and without SKU.
func (s Stream) All(ctx context.Context) iter.Seq2[Listed, error] {
	return func(yield func(Listed, error) bool) {
		skus, _, err := s.SKUs(ctx)
		if err != nil {
			yield(Listed{}, err)
			return
		}
		for some := range slices.Chunk(skus, skusAtOnce) {
			ledgers, errs := s.EachLedger(ctx, some)
			for i, sku := range some {
				var err error
				if errs != nil {
					err = errs[i]
				}
				if !yield(Listed{sku, ledgers[i]}, err) {
					return
				}
			}
		}
	}
}

func ledgerOf(values []any) (l Ledger) {
	var archived int64 // the epoch since which the ledger has no order of before
	for i, to := range []*int64{&l.Epoch, &l.Ver, &l.Born, &l.Total, &l.Held, &l.Sold, &l.Limit, &archived} {
		if i < len(values) {
			text, _ := values[i].(string)
			*to, _ = strconv.ParseInt(text, 10, 64)
		}
	}
	if len(values) == 13 {
		l.State, _ = values[8].(string)
		mark, _ := values[9].(string)
		moves, home, _ := strings.Cut(mark, " ")
		l.moves, _ = strconv.ParseInt(moves, 10, 64)
		l.Home = home
		l.paid = values[10] == "1"
		l.server, _ = values[11].(string)
		first, _ := values[12].(string)
		l.first, _ = strconv.ParseInt(first, 10, 64)
	}
	l.archived = archived > l.Born
	l.Born = max(l.Born, archived)
	return l
}

// rejection is an error that Redis answered with: DoRaw returns its text.
type rejection string

func (e rejection) Error() string { return string(e) }

// RedisError implements redis.Error.
func (rejection) RedisError() {}

// Entries returns at most count entries from a position on, inclusive. Their texts share memory: what is kept of one
// for long is copied.
func (s Stream) Entries(ctx context.Context, sku string, from Position, count int) ([]Entry, error) {
	var text []byte
	key, start := s.Name.SKUKey(sku, "q"), "-"
	if from != (Position{}) {
		start = from.String()
	}
	err := s.Redis.To(key).Do(ctx, func(ctx context.Context, c redisconn.Commands) (err error) {
		text, err = c.DoRaw(ctx, "XRANGE", key, start, "+", "COUNT", count).Bytes()
		if err == nil && bytes.HasPrefix(text, []byte("-")) {
			err = rejection(bytes.TrimSpace(text[1:]))
		}
		return err
	}, redisconn.Unanswered)
	if err != nil {
		return nil, fmt.Errorf("read changes of %q: %w", sku, err)
	}
	r := reply{left: string(text)}
	entries, err := r.entries()
	if err != nil {
		return nil, fmt.Errorf("read changes of %q: %w", sku, err)
	}
	return entries, nil
}

// knows reports whether a ledger has a record of an order.
func (s Stream) knows(ctx context.Context, sku, serial string) (known bool, err error) {
	key := s.Name.SKUKey(sku, "r")
	err = s.Redis.To(key).Do(ctx, func(ctx context.Context, c redisconn.Commands) (err error) {
		known, err = c.HExists(ctx, key, serial).Result()
		return err
	}, redisconn.Unanswered)
	if err != nil {
		return false, fmt.Errorf("read an order of %q: %w", sku, err)
	}
	return known, nil
}

// Records returns all records of a ledger by serial, without positions: each that is there during the whole call. There
// are at most as many as units and tombstones.
func (s Stream) Records(ctx context.Context, sku string) (map[string]Record, error) {
	var all map[string]Record
	key := s.Name.SKUKey(sku, "r")
	err := s.Redis.To(key).Scan(ctx, func(ctx context.Context, c redisconn.Commands, cursor uint64) *redis.ScanCmd {
		return c.HScan(ctx, key, cursor, "", recordsAtOnce)
	}, func(cursor uint64, pairs []string) (bool, error) {
		if cursor == 0 {
			all = make(map[string]Record)
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			r, err := parseRecord(pairs[i], pairs[i+1])
			if err != nil {
				return false, err
			}
			all[r.Serial] = r
		}
		return true, nil
	}, redisconn.Unanswered)
	if err != nil {
		return nil, fmt.Errorf("read records of %q: %w", sku, err)
	}
	return all, nil
}

// Locate gives each record whose last change is in the stream the position and the status of that change. It returns
// the version of the oldest entry, or the largest number if there is none.
func (s Stream) Locate(ctx context.Context, sku string, records map[string]Record) (oldest int64, err error) {
	oldest = math.MaxInt64
	for from := (Position{}); ; {
		entries, err := s.Entries(ctx, sku, from, entriesAtOnce)
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			oldest = min(oldest, e.Ver)
			for _, r := range e.Records {
				if before, ok := records[r.Serial]; ok {
					r = r.after(before)
					r.Serial, r.User = strings.Clone(r.Serial), strings.Clone(r.User)
					records[r.Serial] = r
				}
			}
			from = Position{e.Epoch, e.Ver + 1}
		}
		if len(entries) < entriesAtOnce {
			return oldest, nil
		}
	}
}

// Pin keeps the entry at a position, and all after it, from being trimmed: a consumer group that nothing reads through
// stands before it. The group is that of all targets.
func (s Stream) Pin(ctx context.Context, sku string, at Position) error {
	key, group, before := s.Name.SKUKey(sku, "q"), "settle:"+OrdersTarget, at.before()
	err := s.Redis.To(key).Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
		err := c.XGroupSetID(ctx, key, group, before).Err()
		if err != nil && strings.HasPrefix(err.Error(), "NOGROUP") {
			err = c.XGroupCreate(ctx, key, group, before).Err()
		}
		return err
	}, redisconn.Unanswered)
	if err != nil {
		return fmt.Errorf("pin changes of %q: %w", sku, err)
	}
	return nil
}

// before is an id between the entry at p and the one before it.
func (p Position) before() string {
	if p.Ver < 1 {
		return "0-0"
	}
	return Position{p.Epoch, p.Ver - 1}.String()
}
