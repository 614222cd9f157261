package ledger

import (
	"context"
	"errors"
	"fmt"
)

// Reserve implements Store.
func (r *Redis) Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []Item, codes []Code) (Hint, error) {
	err := errors.Join(checkItems(sku, items, len(codes), true), checkTimes(now, deadline), checkNumber("epoch", epoch))
	if err != nil {
		return Hint{}, fmt.Errorf("reserve %q: %w", sku, err)
	}
	q := batchOf("reserve", sku, now, deadline, items)
	q.seen, q.whole, q.names = epoch, true, true
	q.args = append(q.room[:0], &r.events, &q.now, &q.then, &q.seen)
	reply, err := r.askInTurn(ctx, &q.errand)
	if err != nil {
		return Hint{}, fmt.Errorf("reserve %q: %w", sku, err)
	}
	if lost, ok := r.gone(sku); ok && reply == nil {
		for i := range items {
			codes[i] = NotOnSale
		}
		return lost, nil
	}
	hint, err := answers(reply, codes[:len(items)], UnknownSKU)
	if err == nil {
		r.journal.reserved(sku, hint.Epoch, deadline, items, codes)
	}
	if err == nil && q.few != nil && holds(codes[:len(items)]) {
		err = q.few
	}
	if err != nil {
		return hint, fmt.Errorf("reserve %q: %w", sku, err)
	}
	return hint, nil
}

// Finish implements Store.
func (r *Redis) Finish(ctx context.Context, sku string, now, keep int64, op Op, items []Item, done []Done) (Hint, error) {
	if err := errors.Join(checkFinish(sku, op, items, len(done)), checkTimes(now, keep)); err != nil {
		return Hint{}, fmt.Errorf("%s %q: %w", op, sku, err)
	}
	r.journal.intends(sku, r.traces.find(sku).claim().epoch, op, items)
	q := batchOf("finish", sku, now, keep, items)
	q.op, q.whole = string(op), op == Adopt
	q.args = append(q.room[:0], &r.events, &q.now, &q.then, &q.op)
	reply, err := r.askInTurn(ctx, &q.errand)
	if err != nil {
		return Hint{}, fmt.Errorf("%s %q: %w", op, sku, err)
	}
	hint, err := answers(reply, done[:len(items)], NoLedger)
	if err != nil {
		return Hint{}, fmt.Errorf("%s %q: %w", op, sku, err)
	}
	r.journal.corrects(sku, hint, items, done)
	return hint, nil
}

// batch is an errand about items. It has room for what its arguments lead to: who carries it may still need that when its asker has
// given up, and a value that is an argument by itself is an allocation.
type batch struct {
	errand
	now, then int64 // Unix ms; then holds end, or what is released is forgotten
	seen      int64 // the epoch that the desk goes by
	op        string
	room      [4]any  // for the first arguments
	one       [1]Item // as most batches have among many SKUs
}

// batchOf begins a batch with a copy of the items.
func batchOf(script, sku string, now, then int64, items []Item) *batch {
	q := &batch{errand: errand{script: script, sku: sku, orders: len(items)}, now: now, then: then}
	q.items = append(q.one[:0], items...)
	return q
}

// itemized adds how many items an errand has, and these column by column. Where users and quantities do not count only the
// serials go.
func (q *errand) itemized(args []any) []any {
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
		args = append(args, &q.items[i].Quantity)
	}
	return args
}

// answers reads a hint and one answer for each item; without a reply all of them are missing.
func answers[A Code | Done](reply []any, out []A, missing A) (Hint, error) {
	if reply == nil {
		for i := range out {
			out[i] = missing
		}
		return Hint{}, nil
	}
	if len(reply) != hintSize+len(out) {
		return Hint{}, fmt.Errorf("%d values came back for %d items", len(reply), len(out))
	}
	hint, err := hintOf(reply)
	if err != nil {
		return Hint{}, err
	}
	for i, v := range reply[hintSize:] {
		n, ok := v.(int64)
		if !ok {
			return Hint{}, fmt.Errorf("the answer %v is not a number", v)
		}
		out[i] = A(n)
	}
	return hint, nil
}
