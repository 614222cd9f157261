package layout

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// mostPushed bounds how long an operator's command keeps Redis from everything else, in units.
const mostPushed = 100_000

// resize makes a list n units long, or n longer, and returns its length.
func (l *Layout) resize(ctx context.Context, c redis.Scripter, sku, how string, n int64) (int64, error) {
	if n > mostPushed {
		return 0, fmt.Errorf("%w in this step: at most %d units are pushed at once, not %d", ErrNotWritable, mostPushed, n)
	}
	length, err := redis.NewScript(resizeScript).Run(ctx, c, []string{l.Key(sku)}, how, n).Int64()
	if redis.HasErrorPrefix(err, "UNITS ") {
		return 0, fmt.Errorf("%w: %s", ErrNotWritable, strings.TrimPrefix(err.Error(), "UNITS "))
	}
	return length, err
}

// resizeScript copies a unit only where the first and the last hundred are all the same, and at least two: one alone
// does not tell whether units have names.
const resizeScript = `
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
	return redis.error_reply('UNITS there is no list, or none any more, and so no unit to copy; ' ..
		'push the units as the shop does')
end
if kind ~= 'list' then return redis.error_reply('WRONGTYPE the key holds a ' .. kind) end
local length = redis.call('LLEN', KEYS[1])
local want = tonumber(ARGV[2])
if ARGV[1] == 'add' then want = length + want end
if want < 0 then return redis.error_reply('UNITS the list has only ' .. length) end
if want == length then return length end
local unit = redis.call('LINDEX', KEYS[1], 0)
for _, range in ipairs({{0, 99}, {-100, -1}}) do
	for _, other in ipairs(redis.call('LRANGE', KEYS[1], range[1], range[2])) do
		if other ~= unit then
			return redis.error_reply('UNITS they differ, so that each is a certain one; push and remove them as the shop does')
		end
	end
end
if want < length then
	if want == 0 then redis.call('DEL', KEYS[1]) else redis.call('LTRIM', KEYS[1], 0, want - 1) end
	return want
end
if length < 2 then
	return redis.error_reply('UNITS one alone does not tell whether a copy would sell it twice; ' ..
		'push the units as the shop does')
end
for _ = length + 1, want do redis.call('RPUSH', KEYS[1], unit) end
return want`
