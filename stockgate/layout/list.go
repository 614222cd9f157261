package layout

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// list is a list of units, as in "goods_store:1001" = [1 1 1]. The shop takes a unit by LPOP or RPOP.
//
// Redis has no empty lists: with the last unit the key is gone, as if the SKU had never been there. Who has seen
// the list tells the difference by Emptied; who has not, by the shop's other keys of the SKU.
func list() shape { return shape{list: true, left: only} }

// IsList reports whether the stock is a list, so that one that was there and is missing now is sold out.
func (l *Layout) IsList() bool { return l.list }

// Emptied is r, the reading of a missing list, for a SKU whose list was there before: nothing is left.
func (l *Layout) Emptied(r Reading) Reading {
	r.Exists, r.Left, r.Free = true, 0, min(minus(0, l.soldOutAt), 0)
	return r
}

// QueueTraces puts the commands into pipe that tell more of a SKU of which Read found nothing; their number is
// Traces. Of a hash that has none of the layout's fields Read tells the same as of a missing one. Of a list without
// units it tells the same as of one that never was; its status or its buyers may still be there.
func (l *Layout) QueueTraces(ctx context.Context, pipe redis.Pipeliner, sku string) {
	for _, t := range l.traces() {
		pipe.Exists(ctx, t.Of(sku, l.parts))
	}
}

// Traces is the number of commands that QueueTraces queues, 0 to 2.
func (l *Layout) Traces() int { return len(l.traces()) }

// traces are the keys whose existence QueueTraces asks for.
func (l *Layout) traces() (keys []KeyTemplate) {
	switch {
	case l.SharesHash():
		return nil // a hash without the fields of a SKU has those of others
	case l.hash != nil:
		return []KeyTemplate{l.key}
	}
	for _, t := range []KeyTemplate{l.users, l.status} {
		if l.list && t.Named() { // a key of all SKUs tells nothing of one
			keys = append(keys, t)
		}
	}
	return keys
}

// ReadTraces turns the answers to the commands of QueueTraces, and r, which Read found, into what is known now.
func (l *Layout) ReadTraces(sku string, r Reading, answers []redis.Cmder) Reading {
	there := false
	for _, a := range answers {
		n, err := a.(*redis.IntCmd).Result()
		if err != nil {
			return Reading{Fault: fmt.Errorf("read %q: %w", l.Key(sku), err)}
		}
		there = there || n > 0
	}
	switch {
	case !there:
		return r
	case l.list:
		return l.Emptied(r)
	}
	return Reading{Fault: fmt.Errorf("read %q: %w", l.Key(sku), errors.New("the hash has none of the layout's fields"))}
}
