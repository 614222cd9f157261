package redisstore

import (
	"context"
	"fmt"

	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/protocol"
)

// recover runs recover.lua.
func (r *Store) recover(ctx context.Context, sku string, args []any) (failover.Result, error) {
	reply, err := r.callScript(ctx, "recover", sku, append([]any{r.events}, args...)...)
	if err == nil && reply == nil {
		err = protocol.ErrUnknownSKU
	}
	if err != nil {
		return failover.Result{}, err
	}
	return resultOf(reply)
}

// Hold puts back reservations that a database knows and the ledger has lost. One that the ledger knows, in whichever
// state, stays as it is. The resolver looks at them from due on, Unix ms. At most protocol.MaxItems in a call.
func (r *Store) Hold(ctx context.Context, sku string, now, due int64, items []protocol.Item) error {
	if err := protocol.CheckSKU(sku); err != nil || len(items) == 0 {
		return err
	}
	stock, _, err := r.Look(ctx, sku)
	if err != nil {
		return fmt.Errorf("hold orders of %q again: %w", sku, err)
	}
	args := []any{now, due, 0, 0, len(items)} // phase 0: no one waits for a visitor
	for _, of := range []func(protocol.Item) any{
		func(it protocol.Item) any { return it.Serial },
		func(it protocol.Item) any { return it.User },
		func(it protocol.Item) any { return it.Quantity },
		func(protocol.Item) any { return string(protocol.StatusHeld) },
		func(protocol.Item) any { return due },
		func(protocol.Item) any { return stock.Epoch },
		func(protocol.Item) any { return 0 },
		func(protocol.Item) any { return 0 },
	} {
		for _, it := range items {
			args = append(args, of(it))
		}
	}
	if _, err := r.recover(ctx, sku, args); err != nil {
		return fmt.Errorf("hold orders of %q again: %w", sku, err)
	}
	return nil
}

// resultOf reads the reply of recover.lua.
func resultOf(reply []any) (s failover.Result, err error) {
	if len(reply) != stockSize+4 {
		return s, fmt.Errorf("%d values came back for a recovery", len(reply))
	}
	var opened int64
	if s.Stock, opened, err = stockOf(reply[:stockSize]); err != nil {
		return s, err
	}
	was, ok1 := reply[stockSize+1].(string)
	restored, ok2 := reply[stockSize+2].(int64)
	waits, ok3 := reply[stockSize+3].([]any)
	here, ok4 := reply[stockSize].(int64)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return s, fmt.Errorf("the recovery %v cannot be read", reply[stockSize:])
	}
	for _, name := range waits {
		s.Waits = append(s.Waits, fmt.Sprint(name))
	}
	s.Here, s.Was, s.Restored, s.Opened = here, protocol.State(was), int(restored), opened == 1
	return s, nil
}
