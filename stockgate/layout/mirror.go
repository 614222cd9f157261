package layout

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

// mirrors reports why the free units of a ledger cannot be written into this layout; nil when they can.
func (l *Layout) mirrors() error {
	if l.script != nil || l.list {
		return errors.New("only the layouts counter, counter_users, hash_left and hash_sold can show what a ledger has free")
	}
	return nil
}

// Mirror makes the key of sku show free units, as of the version ver in epoch of a ledger. It reports false, and writes
// nothing, where a later version is shown already. A key that is not there is made, but for hash_sold, whose total is
// the shop's: there sold becomes total − free. A key of another type is an error and stays whole. What is shown is
// never below sold_out_at, so that who reads the layout finds as many free as there are.
//
// Beside the key it keeps the version of each SKU, under a name that a cluster puts into the same slot.
func (l *Layout) Mirror(ctx context.Context, c redis.Scripter, sku string, free, epoch, ver int64) (written bool,
	err error) {
	if err := l.mirrors(); err != nil {
		return false, err
	}
	if !l.Fits(sku) {
		return false, l.partless(sku)
	}
	key := l.Key(sku)
	args := []any{epoch, ver, strconv.FormatInt(max(free, 0)+l.soldOutAt, 10)}
	for _, field := range l.numbersOf(sku) {
		args = append(args, field)
	}
	version := l.beside(key)
	if l.SharesHash() {
		version += ":" + sku
	}
	n, err := redis.NewScript(mirrorScript).Run(ctx, c, []string{key, version}, args...).Int()
	if err != nil {
		return false, fmt.Errorf("mirror to %q: %w", key, err)
	}
	return n == 1, nil
}

func (l *Layout) beside(key string) string { return Beside(l.name, key) }

// Beside is a key in the slot of key, for what a shop's gateways know of it.
func Beside(shop redisconn.Name, key string) string {
	tag := key
	if _, after, found := strings.Cut(key, "{"); found {
		if inner, _, closed := strings.Cut(after, "}"); closed && inner != "" {
			tag = inner
		}
	}
	return shop.Tagged("m", tag, key)
}

// mirrorScript looks before it writes: Lua undoes nothing.
const mirrorScript = `
local epoch, ver, left = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local e, v = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+)-(%d+)$')
e, v = tonumber(e or 0), tonumber(v or 0)
if e > epoch or e == epoch and v >= ver then return 0 end
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= (#ARGV == 3 and 'string' or 'hash') then
	return redis.error_reply('WRONGTYPE the key holds a ' .. kind)
end
if #ARGV == 5 then
	local total = redis.call('HGET', KEYS[1], ARGV[4])
	if not total or not string.find(total, '^-?%d+$') or #total > 15 then
		return redis.error_reply('ERR the hash has no number in its field ' .. ARGV[4])
	end
	redis.call('HSET', KEYS[1], ARGV[5], string.format('%.0f', tonumber(total) - tonumber(left)))
elseif #ARGV == 4 then
	redis.call('HSET', KEYS[1], ARGV[4], left)
else
	redis.call('SET', KEYS[1], left, 'KEEPTTL')
end
redis.call('SET', KEYS[2], ARGV[1] .. '-' .. ARGV[2], 'KEEPTTL')
return 1`
