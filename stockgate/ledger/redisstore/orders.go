package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/protocol"
)

// Reserve implements Store.
func (r *Store) Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []protocol.Item,
	codes []protocol.Code) (protocol.StockVersion, error) {
	err := errors.Join(protocol.CheckItems(sku, items, len(codes), true), protocol.CheckTimes(now, deadline),
		protocol.CheckNumber("epoch", epoch))
	if err != nil {
		return protocol.StockVersion{}, fmt.Errorf("reserve %q: %w", sku, err)
	}
	q := batchOf("reserve", sku, now, deadline, items)
	q.seen, q.whole, q.names = epoch, true, true
	if q.waits = slices.ContainsFunc(items, func(it protocol.Item) bool { return it.Request != "" }); q.waits {
		q.more = queueKeys(sku)
	}
	q.args = append(q.room[:0], &r.events, &q.now, &q.then, &q.seen)
	reply, err := r.call(ctx, &q.scriptCall)
	if err != nil {
		return protocol.StockVersion{}, fmt.Errorf("reserve %q: %w", sku, err)
	}
	if reply == nil {
		lost, gone := r.seenGone(sku)
		if !gone { // another instance, or this one before it was started again, may have known it
			known, err := r.registered(ctx, sku)
			if err != nil {
				return protocol.StockVersion{}, fmt.Errorf("reserve %q: %w", sku, err)
			}
			lost, gone = protocol.StockVersion{State: protocol.Lost}, known[0]
		}
		if gone {
			for i := range items {
				codes[i] = protocol.NotOnSale
			}
			return lost, nil
		}
	}
	hint, err := decodeAnswers(reply, codes[:len(items)], protocol.UnknownSKU)
	if err == nil {
		answer := failover.Answer{Call: q.seq, Epoch: hint.Epoch, Ver: hint.Ver}
		if lost := r.Log.Reserved(sku, answer, deadline, items, codes[:len(items)]); lost != nil {
			q.few = fmt.Errorf("%w: %w", protocol.ErrFewReplicas, lost) // as if no replica had it
		}
	}
	if err == nil && q.few != nil &&
		(slices.Contains(codes[:len(items)], protocol.Held) || slices.Contains(codes[:len(items)], protocol.ReplayHeld)) {
		err = q.few
	}
	if err != nil {
		return hint, fmt.Errorf("reserve %q: %w", sku, err)
	}
	return hint, nil
}

// Finish implements Store.
func (r *Store) Finish(ctx context.Context, sku string, now, keep int64, op protocol.Op, items []protocol.Item,
	done []protocol.Done) (protocol.StockVersion, error) {
	if err := errors.Join(protocol.CheckFinish(sku, op, items, len(done)), protocol.CheckTimes(now, keep)); err != nil {
		return protocol.StockVersion{}, fmt.Errorf("%s %q: %w", op, sku, err)
	}
	if op == protocol.Adopt {
		items = slices.Clone(items)
		for i := range items {
			items[i].Cart = protocol.AnyCart
		}
	}
	r.Log.Intends(sku, r.Seen.Find(sku).Claim().Epoch, op, items)
	q := batchOf("finish", sku, now, keep, items)
	q.op, q.whole = string(op), op == protocol.Adopt
	q.args = append(q.room[:0], &r.events, &q.now, &q.then, &q.op)
	reply, err := r.call(ctx, &q.scriptCall)
	if err != nil {
		return protocol.StockVersion{}, fmt.Errorf("%s %q: %w", op, sku, err)
	}
	hint, err := decodeAnswers(reply, done[:len(items)], protocol.NoLedger)
	if err != nil {
		return protocol.StockVersion{}, fmt.Errorf("%s %q: %w", op, sku, err)
	}
	r.Log.Corrects(sku, failover.Answer{Call: q.seq, Epoch: hint.Epoch, Ver: hint.Ver}, op, items, done)
	return hint, nil
}

// itemCall is a call about items. It has room for what its arguments lead to: a value that is an argument by
// itself is an allocation.
type itemCall struct {
	scriptCall
	now, then int64 // Unix ms; then holds end, or what is released is forgotten
	seen      int64 // the epoch that the reserver goes by
	op        string
	room      [4]any           // for the first arguments
	one       [1]protocol.Item // as most batches have among many SKUs
}

// batchOf begins a batch with a copy of the items.
func batchOf(script, sku string, now, then int64, items []protocol.Item) *itemCall {
	q := &itemCall{scriptCall: scriptCall{script: script, sku: sku, orders: len(items)}, now: now, then: then}
	q.items = append(q.one[:0], items...)
	return q
}

// itemized adds how many items a call has, and these column by column. Where users and quantities do not count
// only the serials go.
func (q *scriptCall) itemized(args []any) []any {
	if len(q.items) == 0 {
		return args
	}
	args = append(args, &q.orders)
	for i := range q.items {
		args = append(args, &q.items[i].Serial)
	}
	if !q.whole {
		return args
	}
	for i := range q.items {
		args = append(args, &q.items[i].User)
	}
	for i := range q.items {
		if cart := q.items[i].Cart; cart != "" {
			args = append(args, protocol.UnitsText(q.items[i].Quantity, cart))
			continue
		}
		args = append(args, &q.items[i].Quantity)
	}
	for i := range q.items {
		if q.waits {
			args = append(args, &q.items[i].Request)
		}
	}
	return args
}

// decodeAnswers reads a hint and one answer for each item; without a reply all of them are missing.
func decodeAnswers[A protocol.Code | protocol.Done | int64](
	reply []any, out []A, missing A,
) (protocol.StockVersion, error) {
	if reply == nil {
		for i := range out {
			out[i] = missing
		}
		return protocol.StockVersion{}, nil
	}
	if len(reply) != versionSize+len(out) {
		return protocol.StockVersion{}, fmt.Errorf("%d values came back for %d items", len(reply), len(out))
	}
	hint, err := versionOf(reply)
	if err != nil {
		return protocol.StockVersion{}, err
	}
	for i, v := range reply[versionSize:] {
		n, ok := v.(int64)
		if !ok {
			return protocol.StockVersion{}, fmt.Errorf("the answer %v is not a number", v)
		}
		out[i] = A(n)
	}
	return hint, nil
}
