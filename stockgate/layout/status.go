package layout

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// HasStatus reports whether a key or a field of the shop tells whether a SKU is on sale.
func (l *Layout) HasStatus() bool { return l.status != nil || l.hasStatusField() }

// SharesStatus reports whether that is one status of all SKUs.
func (l *Layout) SharesStatus() bool {
	if l.hasStatusField() {
		return !l.hash.fields[len(l.numbers)].Named() && !l.key.Named()
	}
	return l.status != nil && !l.status.Named()
}

func (l *Layout) hasStatusField() bool { return l.hash != nil && len(l.hash.fields) > len(l.numbers) }

// StatusKey is the key that holds the status of sku, or the hash with its field.
func (l *Layout) StatusKey(sku string) string {
	if l.hasStatusField() {
		return l.Key(sku)
	}
	return l.status.Of(sku, l.parts)
}

// SetStatus writes that sku is on sale, the first of status_open, or that it is no more, status_closed. It reports
// false, and writes nothing, where an instance has written the same before, and where a SKU is to be closed that none
// has opened: what the shop writes itself then stays. n counts the writes of all instances. With the n of a call before
// as known, it writes nothing unless Redis has lost that one: 0 = none. A hash that is not there is an error, and is
// not made. A key of another type is an error and stays whole.
func (l *Layout) SetStatus(ctx context.Context, c redis.Scripter, sku string, open bool, known int64) (
	n int64, written bool, err error,
) {
	if !l.HasStatus() {
		return 0, false, errors.New("the layout has no status")
	}
	if !l.Fits(sku) {
		return 0, false, l.partless(sku)
	}
	value, state := l.statusClosed, "closed"
	if open {
		value, state = l.statusOpen[0], "open"
	}
	key := l.StatusKey(sku)
	args, mark := []any{state, value, known}, l.beside(key)+":status"
	if l.hasStatusField() {
		field := l.hash.of(sku, l.parts)[len(l.numbers)]
		args, mark = append(args, field), mark+":"+field
	}
	reply, err := redis.NewScript(statusScript).Run(ctx, c, []string{key, mark}, args...).Int64Slice()
	if err != nil {
		return 0, false, fmt.Errorf("write the status to %q: %w", key, err)
	}
	return reply[0], reply[1] == 1, nil
}

// The mark is what was written last, and how many writes there were.
const statusScript = `
local was, n = string.match(redis.call('GET', KEYS[2]) or '', '^(%a+) (%d+)$')
n = tonumber(n or 0)
local known = tonumber(ARGV[3])
if known > 0 and n >= known or (was == 'open') == (ARGV[1] == 'open') then return {n, 0} end
local kind = redis.call('TYPE', KEYS[1]).ok
if #ARGV == 4 then
	if kind == 'none' then return redis.error_reply('ERR there is no such hash') end
	if kind ~= 'hash' then return redis.error_reply('WRONGTYPE the key holds a ' .. kind) end
	redis.call('HSET', KEYS[1], ARGV[4], ARGV[2])
else
	if kind ~= 'none' and kind ~= 'string' then
		return redis.error_reply('WRONGTYPE the key holds a ' .. kind)
	end
	redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
end
n = math.max(n, known) + 1
redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. n)
return {n, 1}`
