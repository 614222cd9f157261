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
	args := arguments(items, true, r.events, now, deadline, epoch)
	q := errand{script: "reserve", sku: sku, args: args, items: items, orders: len(items)}
	reply, err := r.askInTurn(ctx, &q)
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
	q := errand{script: "finish", sku: sku, args: arguments(items, op == Adopt, r.events, now, keep, string(op)), orders: len(items)}
	reply, err := r.askInTurn(ctx, &q)
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

// arguments are those of a script: first those, then how many items, and these column by column. Where users and
// quantities do not count only the serials go.
func arguments(items []Item, whole bool, first ...any) []any {
	args := make([]any, 0, len(first)+1+3*len(items)+markSize)
	args = append(args, first...)
	args = append(args, len(items))
	for i := range items {
		args = append(args, items[i].Serial)
	}
	if !whole {
		return args
	}
	for i := range items {
		args = append(args, items[i].User)
	}
	for i := range items {
		args = append(args, items[i].Quantity)
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
