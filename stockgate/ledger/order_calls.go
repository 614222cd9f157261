package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Reserve asks for items of one SKU in order, in one step, and fills codes. epoch 0 = whatever it is, in the first
// sale of the SKU: a caller that knows no epoch does not know the sale either, from which serials come. For each it
// looks at the epoch, then the record of the serial, whether the SKU is on sale, the free units, the user's limit.
// After ErrFewReplicas the answers are there as well, but what is held could still be lost.
func (r *Store) Reserve(ctx context.Context, sku string, epoch, now, deadline int64, items []Item,
	codes []Code) (h StockVersion, err error) {
	defer describe(&err, "reserve", sku)
	err = errors.Join(checkItems(sku, items, len(codes), true), checkTimes(now, deadline),
		checkNumber("epoch", epoch))
	if err != nil {
		return h, err
	}
	codes = codes[:len(items)]
	q := &scriptCall{script: reserveScript, sku: sku, args: []any{r.events, now, deadline, epoch}, items: items,
		whole: true, names: true}
	if q.waits = slices.ContainsFunc(items, func(it Item) bool { return it.Request != "" }); q.waits {
		q.more = r.queueKeys(sku)
	}
	reply, err := r.share(ctx, q)
	if err != nil {
		return h, err
	}
	if reply == nil {
		lost, gone, err := r.lostLedger(ctx, sku)
		if err != nil {
			return h, err
		}
		if gone {
			for i := range codes {
				codes[i] = NotOnSale
			}
			return lost, nil
		}
	}
	if h, err = decodeAnswers(reply, codes, UnknownSKU); err != nil {
		return h, err
	}
	if lost := r.Log.Reserved(sku, q.answered, deadline, items, codes); lost != nil {
		q.few = fmt.Errorf("%w: %w", ErrFewReplicas, lost) // as if no replica had it
	}
	if holds(codes) {
		return h, q.few
	}
	return h, nil
}

// lostLedger reports whether a ledger that is not there was there before, and what is to be said of it then. Another
// instance, or this one before it was started again, may have known it.
func (r *Store) lostLedger(ctx context.Context, sku string) (StockVersion, bool, error) {
	if lost, gone := r.Seen.Find(sku).Lost(); gone {
		return lost, true, nil
	}
	known, err := r.registered(ctx, sku)
	return StockVersion{State: Lost}, err == nil && known[0], err
}

// Finish does op to each of items in order, and fills done. It is idempotent by serial. User and Quantity of an
// item are needed for Adopt alone, and of what is held its own ones stand; a release of an unknown serial leaves a
// tombstone until keep. The state of the SKU does not matter: what was sent is always settled.
func (r *Store) Finish(ctx context.Context, sku string, now, keep int64, op Op, items []Item,
	done []Done) (h StockVersion, err error) {
	defer describe(&err, string(op), sku)
	err = errors.Join(checkFinish(sku, op, items, len(done)), checkTimes(now, keep))
	if err != nil {
		return h, err
	}
	if op == Adopt {
		items = slices.Clone(items)
		for i := range items {
			items[i].Cart = AnyCart
		}
	}
	seen := r.Seen.Find(sku).Claim()
	r.Log.Intends(sku, max(seen.Epoch, seen.Sale), op, items)
	q := &scriptCall{script: "finish", sku: sku, args: []any{r.events, now, keep, string(op)}, items: items,
		whole: op == Adopt}
	reply, err := r.share(ctx, q)
	if err != nil {
		return h, err
	}
	if h, err = decodeAnswers(reply, done[:len(items)], NoLedger); err != nil {
		return h, err
	}
	r.Corrects(sku, q.answered, op, items, done)
	return h, nil
}

// itemized adds how many items a call has, and these column by column. Where users and quantities do not count
// only the serials go.
func (q *scriptCall) itemized(args []any) []any {
	if len(q.items) == 0 {
		return args
	}
	args = append(args, len(q.items))
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
			args = append(args, unitsText(q.items[i].Quantity, cart))
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

// decodeAnswers reads a stock version and one answer for each item; without a reply all of them are missing.
func decodeAnswers[A Code | Done](reply []any, out []A, missing A) (StockVersion, error) {
	if reply == nil {
		for i := range out {
			out[i] = missing
		}
		return StockVersion{}, nil
	}
	if len(reply) != versionSize+len(out) {
		return StockVersion{}, fmt.Errorf("%d values came back for %d items", len(reply), len(out))
	}
	h, err := versionOf(reply)
	if err != nil {
		return StockVersion{}, err
	}
	for i, v := range reply[versionSize:] {
		n, ok := v.(int64)
		if !ok {
			return StockVersion{}, fmt.Errorf("the answer %v is not a number", v)
		}
		out[i] = A(n)
	}
	return h, nil
}
