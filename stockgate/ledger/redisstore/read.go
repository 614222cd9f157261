package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"sluice/stockgate/ledger/protocol"
)

// errMayLack is the cause when a ledger does not have what it is asked for, and may have lost it.
var errMayLack = errors.New("the ledger may lack its last orders")

// Places of keys among those of a ledger, from 1.
const recordsPlace, unitsPlace = 2, 3

// reading is what fields of one key of a ledger hold.
type reading struct {
	values []any          // by position; nil = it has no ledger
	state  protocol.State // Verifying, Frozen and Lost: it may lack something. "" = it never had a ledger
	err    error
}

// readAll reads fields of the key at a place of each SKU, in one round trip to each server, and one more where a SKU
// has no ledger: whether it had one the registry knows.
func (r *Store) readAll(ctx context.Context, place int, skus []string, fields func(sku string) []string) []reading {
	all := r.callMany(ctx, skus, func(sku string) scriptCall {
		of := fields(sku)
		args := append(make([]any, 0, 2+len(of)), place, len(of))
		for _, field := range of {
			args = append(args, field)
		}
		return scriptCall{script: "read", sku: sku, args: args, aside: true, err: protocol.CheckSKU(sku)}
	})
	read := make([]reading, len(all))
	var none []string
	for i := range all {
		q := &all[i]
		switch read[i].err = q.err; {
		case q.err != nil:
		case q.answer == nil:
			none = append(none, q.sku)
		default:
			version, err := versionOf(q.answer)
			if c := &q.claim; c.Lost != "" || version.Older(protocol.StockVersion{Epoch: c.Epoch, Ver: c.Ver}) {
				version.State = protocol.Verifying // less than this instance had seen before it asked
			}
			read[i] = reading{q.answer[versionSize:], version.State, err}
		}
	}
	if len(none) == 0 {
		return read
	}
	known, err := r.registered(ctx, none...)
	for i, k := 0, 0; i < len(read); i++ {
		if q := &all[i]; q.err == nil && q.answer == nil {
			if read[i].err = err; err == nil && (known[k] || r.Seen.Find(q.sku) != nil) {
				read[i].state = protocol.Lost
			}
			k++
		}
	}
	return read
}

// lacks is the error of a reading that does not have what was asked for; nil = it is certain that there is no such
// thing.
func (v *reading) lacks(sku string) error {
	switch v.state {
	case protocol.Lost:
		return protocol.LostLedger(sku)
	case protocol.Verifying, protocol.Frozen:
		return errMayLack
	}
	return nil
}

// UnitsOf implements protocol.Counter.
func (r *Store) UnitsOf(ctx context.Context, skus, users []string) []protocol.Owned {
	read := r.readAll(ctx, unitsPlace, skus, func(string) []string { return users })
	owned := make([]protocol.Owned, len(read))
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

// FindAll implements Store. That there is no such order only a ledger says which has lost nothing.
func (r *Store) FindAll(ctx context.Context, orders []protocol.OrderName) []protocol.Found {
	found, serials, bySKU := make([]protocol.Found, len(orders)), make(map[string][]string), make(map[string][]int)
	var skus []string
	for i, o := range orders {
		if err := errors.Join(protocol.CheckSKU(o.SKU), protocol.CheckSerial(o.Serial)); err != nil {
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
			if err == nil {
				if text, ok := valueAt(v.values, k); ok {
					f.Record, err = protocol.DecodeRecord(orders[i].Serial, text)
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
