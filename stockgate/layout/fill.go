package layout

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Fill writes the stock of sku, n units that can be sold, where the shop has none yet: a key, a field or a list that is
// not there. It reports false, and writes nothing, where there is one, even of 0 units. A list is filled once for each
// id, since Redis forgets a list that is sold out: what was filled, or seen, is remembered for keep. A key of another
// type is an error and stays whole.
func (l *Layout) Fill(ctx context.Context, c redis.Scripter, sku string, n int64, id string, keep time.Duration) (
	filled bool, err error,
) {
	switch {
	case !l.Fits(sku):
		return false, l.partless(sku)
	case l.script != nil:
		return false, l.unwritable()
	case l.list && n > mostPushed:
		return false, fmt.Errorf("%w: a list is filled with %d units at most, not %d", ErrNotWritable, mostPushed, n)
	}
	kind := "string"
	if l.list {
		kind = "list"
	} else if l.hash != nil {
		kind = "hash"
	}
	args := []any{kind, max(n+l.soldOutAt, 0), id, int64(keep/time.Second) + 1}
	for _, field := range l.numbersOf(sku) {
		args = append(args, field)
	}
	key := l.Key(sku)
	done, err := redis.NewScript(fillScript).Run(ctx, c, []string{key, Beside(key) + ":filled:" + sku}, args...).Int()
	if err != nil {
		return false, fmt.Errorf("fill %q: %w", key, err)
	}
	return done == 1, nil
}

// fillScript gives the first field the units, and the others 0.
const fillScript = `
if redis.call('GET', KEYS[2]) == ARGV[3] then return 0 end
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= ARGV[1] then
	return redis.error_reply('WRONGTYPE the key holds a ' .. kind)
end
local done = 1
if ARGV[1] == 'hash' then
	for i = 5, #ARGV do
		if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1 then return 0 end
	end
	redis.call('HSET', KEYS[1], ARGV[5], ARGV[2])
	for i = 6, #ARGV do redis.call('HSET', KEYS[1], ARGV[i], 0) end
elseif ARGV[1] == 'list' then
	if kind == 'list' then
		done = 0
	else
		for _ = 1, tonumber(ARGV[2]) do redis.call('RPUSH', KEYS[1], '1') end
	end
elseif kind == 'string' then
	return 0
else
	redis.call('SET', KEYS[1], ARGV[2])
end
redis.call('SET', KEYS[2], ARGV[3], 'EX', ARGV[4])
return done`
