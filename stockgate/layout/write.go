package layout

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// ErrNotWritable is the cause when only the shop itself can write its stock: through a script nothing can be written,
// and only the shop knows what a unit of a list looks like.
var ErrNotWritable = errors.New("only the shop can change this stock")

// Set writes n units for sku: the counter, what is left, or (hash_sold) the total, beside a sold of 0 where
// there was none. Of a list it makes the length n, as Add does. The status and the users who have bought are left as
// they are: stocking a SKU does not put it on sale. A key of another type is an error and stays whole; a counter
// keeps its time to live, which needs Redis 6.
func (l *Layout) Set(ctx context.Context, c redis.Scripter, sku string, n int64) error {
	switch {
	case !l.Fits(sku):
		return l.partless(sku)
	case l.script != nil:
		return l.unwritable()
	case l.list:
		_, err := l.resize(ctx, c, sku, "set", n)
		return err
	}
	return redis.NewScript(setScript).Run(ctx, c, []string{l.Key(sku)}, l.args(sku, n)...).Err()
}

// args are a number and the fields that a script works on.
func (l *Layout) args(sku string, n int64) []any {
	args := []any{n}
	for _, field := range l.numbersOf(sku) {
		args = append(args, field)
	}
	return args
}

// setScript asks for the type itself: SET would replace a hash of the shop's by a number.
const setScript = `
if #ARGV == 1 then
	local kind = redis.call('TYPE', KEYS[1]).ok
	if kind ~= 'string' and kind ~= 'none' then
		return redis.error_reply('WRONGTYPE the key holds a ' .. kind)
	end
	redis.call('SET', KEYS[1], ARGV[1], 'KEEPTTL')
	return 1
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[1])
for i = 3, #ARGV do redis.call('HSETNX', KEYS[1], ARGV[i], 0) end
return 1`

// Add changes the stock of sku by delta, which may be negative, and returns what is left then. It reports
// false, and writes nothing, when the key does not exist: a misspelt SKU must not become one that is for sale.
//
// A list gets copies of the units that it has, where they are all the same; where they differ each is a certain
// unit, and a copy would sell that twice: ErrNotWritable.
func (l *Layout) Add(ctx context.Context, c redis.Scripter, sku string, delta int64) (left int64, exists bool,
	err error) {
	switch {
	case !l.Fits(sku):
		return 0, false, l.partless(sku)
	case l.script != nil:
		return 0, false, l.unwritable()
	case l.list:
		left, err = l.resize(ctx, c, sku, "add", delta)
		return left, err == nil, err
	}
	values, err := redis.NewScript(addScript).Run(ctx, c, []string{l.Key(sku)}, l.args(sku, delta)...).Slice()
	if err != nil {
		return 0, false, err
	}
	if len(values) == 0 {
		return 0, false, nil
	}
	left, err = l.leftOf(sku, values)
	if err != nil {
		return 0, true, fmt.Errorf("read %q: %w", l.Key(sku), err)
	}
	return left, true, nil
}

// leftOf is what is left by the numbers alone.
func (l *Layout) leftOf(sku string, values []any) (int64, error) {
	numbersOnly := Layout{shape: l.shape}
	r, err := numbersOnly.count(l.numbersOf(sku), values)
	return r.Left, err
}

// addScript answers with the strings that the key then holds, since Lua would round large numbers.
const addScript = `
if redis.call('EXISTS', KEYS[1]) == 0 then return {} end
if #ARGV > 1 and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return {} end
if #ARGV == 1 then
	redis.call('INCRBY', KEYS[1], ARGV[1])
	return {redis.call('GET', KEYS[1])}
end
redis.call('HINCRBY', KEYS[1], ARGV[2], ARGV[1])
return redis.call('HMGET', KEYS[1], unpack(ARGV, 2))`

// unwritable says why no stock behind a script is written.
func (l *Layout) unwritable() error {
	return fmt.Errorf("%w: Sluice reads it by script_file, which cannot write; change it as the shop does", ErrNotWritable)
}

// Fits reports whether sku has all the parts that the keys name, none of them empty. Any other has no stock: its key
// would be another SKU's, or leave the slot of its other keys. Nor has one whose field belongs to another SKU.
func (l *Layout) Fits(sku string) bool {
	return fitsParts(sku, l.parts) && (l.hash == nil || l.hash.owns(sku, l.parts))
}

// partless says why a SKU that does not fit is not written.
func (l *Layout) partless(sku string) error {
	if fitsParts(sku, l.parts) {
		return fmt.Errorf("%w: the fields of %q belong to another SKU", ErrNotWritable, sku)
	}
	return fmt.Errorf("%w: the keys name %d parts of a SKU, with colons between them, and %q has not so many",
		ErrNotWritable, l.parts, sku)
}

// Pattern finds the keys of all SKUs by SCAN MATCH, and perhaps keys of other things.
func (l *Layout) Pattern() string { return l.key.Pattern() }

// SKU returns the SKU whose stock is in key, the inverse of Key.
func (l *Layout) SKU(key string) (string, bool) { return l.key.SKU(key, l.parts) }
