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
