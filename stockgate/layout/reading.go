package layout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Reading is what the shop's keys say of one SKU.
type Reading struct {
	Left   int64 // units left, as the shop counts them
	Free   int64 // Left − sold_out_at, at most 0 behind a sold-out flag: 0 or less is sold out
	Exists bool  // the SKU has stock keys, or a sold-out flag
	OnSale bool  // its status is one of status_open, or no status is configured
	Fault  error // the keys hold something else than a stock; the other fields mean nothing then
}

// Queue puts the commands that read sku into pipe; their number is Commands.
//
// Each key has a command of its own: MGET would report a key of the wrong type as a missing one. See Together.
func (l *Layout) Queue(ctx context.Context, pipe redis.Pipeliner, sku string) {
	switch {
	case l.script != nil:
		l.script.queue(ctx, pipe, l.scriptKeys(sku), sku)
	case l.list:
		pipe.LLen(ctx, l.Key(sku))
	case l.hash == nil:
		pipe.Get(ctx, l.Key(sku))
	default:
		pipe.HMGet(ctx, l.Key(sku), l.hash.of(sku, l.parts)...)
	}
	l.queueOthers(ctx, pipe, sku)
}

// queueOthers queues the commands for the other keys of sku.
func (l *Layout) queueOthers(ctx context.Context, pipe redis.Pipeliner, sku string) {
	if l.status != nil {
		pipe.Get(ctx, l.status.Of(sku, l.parts))
	}
	if l.flag != nil {
		pipe.Exists(ctx, l.flag.Of(sku, l.parts))
	}
}

// Commands is the number of commands that Queue queues for one SKU, 1 to 3. QueueHashes needs fewer.
func (l *Layout) Commands() int {
	n := 1
	if l.status != nil {
		n++
	}
	if l.flag != nil {
		n++
	}
	return n
}

// Key is the key that holds the stock of sku.
func (l *Layout) Key(sku string) string { return l.key.Of(sku, l.parts) }

// Read turns the answers to the commands of Queue into a reading. Answers that are errors other than "no such
// key" become its fault.
func (l *Layout) Read(sku string, answers []redis.Cmder) Reading {
	r, err := l.stock(sku, answers[0])
	if err != nil {
		r = Reading{Fault: fmt.Errorf("read %q: %w", l.Key(sku), err)}
	}
	return l.readOthers(sku, r, answers[1:])
}

// readOthers adds to r what the answers to the commands of queueOthers say.
func (l *Layout) readOthers(sku string, r Reading, answers []redis.Cmder) Reading {
	if l.status != nil {
		status, err := text(answers[0])
		if err != nil {
			return Reading{Fault: fmt.Errorf("read %q: %w", l.status.Of(sku, l.parts), err)}
		}
		r.OnSale = r.OnSale && slices.Contains(l.statusOpen, status)
		answers = answers[1:]
	}
	if l.flag != nil {
		flag, err := answers[0].(*redis.IntCmd).Result()
		if err != nil {
			return Reading{Fault: fmt.Errorf("read %q: %w", l.flag.Of(sku, l.parts), err)}
		}
		if flag > 0 { // some shops delete or clear the stock when they set the flag
			r.Exists, r.Free, r.Fault = true, min(r.Free, 0), nil
		}
	}
	return r
}

// stock reads the answer to the command about the key itself.
func (l *Layout) stock(sku string, answer redis.Cmder) (Reading, error) {
	if said, ok := answer.(*redis.Cmd); ok {
		return l.said(said)
	}
	values, err := l.values(answer)
	if err != nil {
		return Reading{}, err
	}
	var fields []string
	if l.hash != nil {
		fields = l.hash.of(sku, l.parts)
	}
	return l.count(fields, values)
}

// values are the string, the length of the list, or the hash's fields, in the order asked; nil for what is missing.
func (l *Layout) values(answer redis.Cmder) ([]any, error) {
	switch cmd := answer.(type) {
	case *redis.SliceCmd:
		return cmd.Result()
	case *redis.StringCmd:
		value, err := cmd.Result()
		if errors.Is(err, redis.Nil) {
			return []any{nil}, nil
		}
		return []any{value}, err
	case *redis.IntCmd:
		length, err := cmd.Result()
		if length == 0 { // Redis has no empty lists
			return []any{nil}, err
		}
		return []any{strconv.FormatInt(length, 10)}, err
	}
	panic(fmt.Sprintf("BUG: layout asked for %T", answer))
}

// count reads the stock out of values: the numbers, then the status where a status_field is configured. They are those
// of fields, which a string or a list has none of.
func (l *Layout) count(fields []string, values []any) (Reading, error) {
	own := values
	if l.SharesHash() {
		own = values[:len(l.numbers)] // the status may be of all SKUs
	}
	if !slices.ContainsFunc(own, func(v any) bool { return v != nil }) {
		return Reading{OnSale: true}, nil
	}
	r := Reading{Exists: true, OnSale: true}
	if l.hash != nil && len(values) > len(l.numbers) {
		last := len(values) - 1
		status, _ := values[last].(string)
		r.OnSale = slices.Contains(l.statusOpen, status)
		values = values[:last]
	}
	numbers := make([]int64, len(values))
	for i, v := range values {
		s, ok := v.(string)
		if !ok {
			return r, fmt.Errorf("the hash has no field %q", fields[i])
		}
		var err error
		if numbers[i], err = units(s); err != nil {
			return r, inField(fields, i, err)
		}
	}
	var err error
	r.Left, err = l.left(numbers)
	r.Free = minus(r.Left, l.soldOutAt)
	return r, err
}

// inField says which field a value that is no number was in.
func inField(fields []string, i int, err error) error {
	if fields == nil {
		return err
	}
	return fmt.Errorf("field %q: %w", fields[i], err)
}

// text is the string of a status, "" when there is none.
func text(answer redis.Cmder) (string, error) {
	s, err := answer.(*redis.StringCmd).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return s, err
}
