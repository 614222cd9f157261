package layout

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Filling is the stock of a sale that is written where the shop has none.
type Filling struct {
	Sale  string // name
	Ends  time.Time
	Units int64
	Write bool          // false = it is only marked, since the sale has begun
	Now   time.Time     // of the clock that all instances share
	Keep  time.Duration // for how long the mark stays
}

// Filled is what became of a Filling.
type Filled int

// What Fill answers.
const (
	There   Filled = iota // the shop has stock, or Write is false; that is marked
	Written               // and marked
	Before                // the mark is of this sale: nothing is done
	Later                 // the mark is of another sale that is not over yet: nothing is done
	Moved                 // the mark is of a sale of this name with another end: nothing is done
)

// Fill writes the stock of sku where the shop has none yet: a key, a field or a list that is not there. Where there is
// one, even of 0 units, it stays. One mark for each SKU names the last sale that was filled or seen, and its end: that
// sale is never filled again, since a key that is gone may have been sold out, and another one only behind that end. A
// key of another type is an error and stays whole.
func (l *Layout) Fill(ctx context.Context, c redis.Scripter, sku string, f Filling) (Filled, error) {
	switch {
	case !l.Fits(sku):
		return There, l.partless(sku)
	case l.script != nil:
		return There, l.unwritable()
	case l.list && f.Units > mostPushed:
		return There, fmt.Errorf("%w: a list is filled with %d units at most, not %d", ErrNotWritable, mostPushed, f.Units)
	}
	kind := "string"
	if l.list {
		kind = "list"
	} else if l.hash != nil {
		kind = "hash"
	}
	write := 0
	if f.Write {
		write = 1
	}
	args := []any{kind, max(f.Units+l.soldOutAt, 0), f.Sale, f.Ends.Unix(), f.Now.Unix(), write,
		max(int64(f.Keep/time.Second), 0) + 1}
	for _, field := range l.numbersOf(sku) {
		args = append(args, field)
	}
	key := l.Key(sku)
	done, err := redis.NewScript(fillScript).Run(ctx, c, []string{key, l.beside(key) + ":filled:" + sku}, args...).Int()
	if err != nil {
		return There, fmt.Errorf("fill %q: %w", key, err)
	}
	return Filled(done), nil
}

// fillScript gives the first field the units, and the others 0. The mark is "ends name".
const fillScript = `
local ends, name = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) (.*)$')
if name == ARGV[3] then
	if ends == ARGV[4] then return 2 end
	return 4
end
if name and tonumber(ends) > tonumber(ARGV[5]) then return 3 end
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= ARGV[1] then
	return redis.error_reply('WRONGTYPE the key holds a ' .. kind)
end
local there = ARGV[6] == '0' or kind ~= 'none'
if ARGV[6] == '1' and ARGV[1] == 'hash' then
	there = false
	for i = 8, #ARGV do
		there = there or redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1
	end
end
redis.call('SET', KEYS[2], ARGV[4] .. ' ' .. ARGV[3], 'EX', ARGV[7])
if there then return 0 end
if ARGV[1] == 'hash' then
	redis.call('HSET', KEYS[1], ARGV[8], ARGV[2])
	for i = 9, #ARGV do redis.call('HSET', KEYS[1], ARGV[i], 0) end
elseif ARGV[1] == 'list' then
	for _ = 1, tonumber(ARGV[2]) do redis.call('RPUSH', KEYS[1], '1') end
else
	redis.call('SET', KEYS[1], ARGV[2])
end
return 1`
