package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"sluice/stockgate/redisconn"

	"github.com/redis/go-redis/v9"
)

// errMayLack is the cause when a ledger does not have what it is asked for, and may have lost it.
var errMayLack = errors.New("the ledger may lack its last orders")

// Places of keys among those of a ledger.
const recordsPlace, unitsPlace = 1, 2

// reading is what fields of one key of a ledger hold.
type reading struct {
	values []any // by position; nil = it has no ledger
	state  State // Verifying, Frozen and Lost: it may lack something. "" = it never had a ledger
	sale   int64
	err    error
}

// ledgerQuestion is what one ledger is asked. What it says of itself comes first: one that has lost nothing then has, in
// what follows, all orders of before.
type ledgerQuestion struct {
	keys    [numKeys]string
	claim   Claim  // what this instance had seen
	server  string // that answered
	numbers *redis.SliceCmd
	there   *redis.IntCmd
	values  *redis.SliceCmd
}

// readAll reads fields of the key at a place of each SKU, in one round trip to each server, and one more where a SKU
// has no ledger: whether it had one the registry knows. It runs no script, for the sake of Redis: clients may ask for
// very many SKUs.
func (r *Store) readAll(ctx context.Context, place int, skus []string, fields func(sku string) []string) []reading {
	all, at, read := make([]ledgerQuestion, len(skus)), make([]string, len(skus)), make([]reading, len(skus))
	for i, sku := range skus {
		all[i].keys, all[i].claim = r.keys(sku), r.Seen.Find(sku).Claim()
		at[i] = all[i].keys[0]
	}
	errs := r.link.AskEach(ctx, at, func(ctx context.Context, c redisconn.Commands, server string, which []int) error {
		pipe := c.Pipeline()
		for _, i := range which {
			q := &all[i]
			q.server, q.numbers = server, pipe.HMGet(ctx, at[i], "state", "run", "epoch", "ver", "sale", "held", "sold")
			q.there = pipe.Exists(ctx, q.keys[place])
			q.values = pipe.HMGet(ctx, q.keys[place], fields(skus[i])...)
		}
		_, err := pipe.Exec(ctx)
		return err
	}, storeFault)
	var none []string
	for i := range all {
		v, q := &read[i], &all[i]
		if q.values != nil {
			*v = q.answer()
			r.Seen.HearSale(skus[i], v.sale)
		} else if v.err = errNoReply; errs != nil && errs[i] != nil {
			v.err = errs[i]
		}
		if v.err = cmp.Or(CheckSKU(skus[i]), v.err); v.err == nil && v.values == nil {
			none = append(none, skus[i])
		}
	}
	if len(none) > 0 {
		r.findLost(ctx, none, skus, read)
	}
	return read
}

// findLost finds out which SKUs without a ledger had one.
func (r *Store) findLost(ctx context.Context, none, skus []string, read []reading) {
	known, err := r.registered(ctx, none...)
	k := 0
	for i := range read {
		v := &read[i]
		if v.err != nil || v.values != nil {
			continue
		}
		if v.err = err; err == nil && (known[k] || r.Seen.Find(skus[i]) != nil) {
			v.state = Lost
		}
		k++
	}
}

// answer is what came back. A server that took over may lack the last orders, of a SKU that is not on sale, too.
func (q *ledgerQuestion) answer() (v reading) {
	if v.err = cmp.Or(q.numbers.Err(), q.there.Err(), q.values.Err()); v.err != nil {
		return v
	}
	said := q.numbers.Val()
	state, ok := said[0].(string)
	if !ok {
		return v
	}
	var n [5]int64 // epoch, ver, sale, held, sold
	for i := range n {
		text, ok := said[2+i].(string)
		if i == 2 && !ok { // the first sale
			continue
		}
		if n[i], v.err = strconv.ParseInt(text, 10, 64); v.err != nil {
			return v
		}
	}
	if n[3]+n[4] > 0 && q.there.Val() == 0 {
		return reading{err: errors.New("it counts reservations whose keys are gone")}
	}
	v.values, v.state, v.sale = q.values.Val(), stateOf(state), n[2]
	run, _ := said[1].(string)
	c := &q.claim
	older := version{n[0], n[1]}.older(version{c.Epoch, c.Ver})
	if c.Lost != "" || older || v.sale < c.Sale || q.server != "" && run != "" && run != q.server {
		v.state = Verifying
	}
	return v
}

// lacks is the error of a reading that does not have what was asked for; nil = it is certain that there is no such
// thing.
func (v *reading) lacks(sku string) error {
	switch v.state {
	case Lost:
		return LostLedger(sku)
	case Verifying, Frozen:
		return errMayLack
	}
	return nil
}

// UnitsOf tells by position how many units users hold or have bought of several SKUs, at most MaxItems of
// MaxTogether.
func (r *Store) UnitsOf(ctx context.Context, skus, users []string) []Owned {
	read := r.readAll(ctx, unitsPlace, skus, func(string) []string { return users })
	owned := make([]Owned, len(read))
	for i := range read {
		own := &owned[i]
		if own.State, own.Err = read[i].state, read[i].err; own.Err == nil && read[i].values != nil {
			own.Units, own.Err = unitsIn(read[i].values)
		}
		if own.Err != nil {
			own.Units, own.Err = nil, fmt.Errorf("count units of users of %q: %w", skus[i], own.Err)
		}
	}
	return owned
}

// unitsIn are numbers of units; a user without any has no field.
func unitsIn(values []any) ([]int64, error) {
	units := make([]int64, len(values))
	for i, v := range values {
		if text, ok := v.(string); ok {
			var err error
			if units[i], err = strconv.ParseInt(text, 10, 64); err != nil {
				return nil, err
			}
		}
	}
	return units, nil
}

// FindAll looks several serials up at once, at most 512, of any SKUs. What it finds comes back by position. A ledger
// that may have lost a serial does not say that there is none: that is an error.
func (r *Store) FindAll(ctx context.Context, orders []OrderName) []Found {
	found, serials, bySKU := make([]Found, len(orders)), make(map[string][]string), make(map[string][]int)
	var skus []string
	for i, o := range orders {
		if err := errors.Join(CheckSKU(o.SKU), CheckSerial(o.Serial)); err != nil {
			found[i].Err = fmt.Errorf("find %q: %w", o.Serial, err)
			continue
		}
		if bySKU[o.SKU] == nil {
			skus = append(skus, o.SKU)
		}
		serials[o.SKU], bySKU[o.SKU] = append(serials[o.SKU], o.Serial), append(bySKU[o.SKU], i)
	}
	if len(skus) == 0 {
		return found
	}
	read := r.readAll(ctx, recordsPlace, skus, func(sku string) []string { return serials[sku] })
	for n, sku := range skus {
		v := &read[n]
		for k, i := range bySKU[sku] {
			err, f := v.err, &found[i]
			f.Sale = v.sale
			if err == nil {
				if text, ok := valueAt(v.values, k); ok {
					f.Record, err = DecodeRecord(orders[i].Serial, text)
					f.OK = err == nil
				} else {
					err = v.lacks(sku)
				}
			}
			if err != nil {
				f.Err = fmt.Errorf("find %q: %w", orders[i].Serial, err)
			}
		}
	}
	return found
}

// valueAt is the text at a place; false = there is none.
func valueAt(values []any, k int) (string, bool) {
	if k >= len(values) {
		return "", false
	}
	text, ok := values[k].(string)
	return text, ok
}
