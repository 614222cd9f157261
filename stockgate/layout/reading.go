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

// MaxCommands is the most commands that Queue queues for one SKU.
const MaxCommands = 3

// Queue puts the commands that read sku into pipe; their number is Commands.
//
// Each key has a command of its own: MGET would report a key of the wrong type as a missing one. See Together.
func (l *Layout) Queue(ctx context.Context, pipe redis.Pipeliner, sku string) {
	switch {
	case l.script != nil:
		l.script.queue(ctx, pipe, l.scriptKeys(sku), sku)
	case l.list:
		pipe.LLen(ctx, l.Key(sku))
	case l.numbers == nil:
		pipe.Get(ctx, l.Key(sku))
	case l.statusField != "":
		pipe.HMGet(ctx, l.Key(sku), append(slices.Clone(l.numbers), l.statusField)...)
	default:
		pipe.HMGet(ctx, l.Key(sku), l.numbers...)
	}
	if l.status != nil {
		pipe.Get(ctx, l.status.Of(sku, l.parts))
	}
	if l.flag != nil {
		pipe.Exists(ctx, l.flag.Of(sku, l.parts))
	}
}

// Commands is the number of commands that Queue queues for one SKU, 1 to MaxCommands.
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
	r, err := l.stock(answers[0])
	if err != nil {
		return Reading{Fault: fmt.Errorf("read %q: %w", l.Key(sku), err)}
	}
	answers = answers[1:]
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
		if flag > 0 { // some shops delete the stock when they set the flag
			r.Exists, r.Free = true, min(r.Free, 0)
		}
	}
	return r
}

// stock reads the answer to the command about the key itself.
func (l *Layout) stock(answer redis.Cmder) (Reading, error) {
	if said, ok := answer.(*redis.Cmd); ok {
		return l.said(said)
	}
	values, err := l.values(answer)
	if err != nil {
		return Reading{}, err
	}
	return l.count(values)
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

// count reads the stock out of values: the numbers, then the status where a status_field is configured.
func (l *Layout) count(values []any) (Reading, error) {
	if !slices.ContainsFunc(values, func(v any) bool { return v != nil }) {
		return Reading{OnSale: true}, nil
	}
	r := Reading{Exists: true, OnSale: true}
	if l.statusField != "" {
		last := len(values) - 1
		status, _ := values[last].(string)
		r.OnSale = slices.Contains(l.statusOpen, status)
		values = values[:last]
	}
	numbers := make([]int64, len(values))
	for i, v := range values {
		s, ok := v.(string)
		if !ok {
			return r, fmt.Errorf("the hash has no field %q", l.numbers[i])
		}
		var err error
		if numbers[i], err = units(s); err != nil {
			return r, l.name(i, err)
		}
	}
	var err error
	r.Left, err = l.left(numbers)
	r.Free = minus(r.Left, l.soldOutAt)
	return r, err
}

// name says which field a value that is no number was in.
func (l *Layout) name(i int, err error) error {
	if l.numbers == nil {
		return err
	}
	return fmt.Errorf("field %q: %w", l.numbers[i], err)
}

// text is the string of a status, "" when there is none.
func text(answer redis.Cmder) (string, error) {
	s, err := answer.(*redis.StringCmd).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return s, err
}
