package layout

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// StatusChange is what an instance wants the status of a SKU to be.
type StatusChange struct {
	Open bool

	// Known is StatusMark.Writes of a call before: nothing is written then unless Redis has lost that one. 0 = none.
	Known int64

	// Patience is for how long an instance must not have said that the SKU is on sale before this one closes it; whole
	// seconds.
	Patience time.Duration
}

// StatusMark is what Redis knows of the status that instances have written.
type StatusMark struct {
	Writes  int64 // of all instances
	Written bool  // by this call
	Open    bool  // as it was written last
}

// SetStatus writes that sku is on sale, the first of status_open, or that it is no more, status_closed. It writes
// nothing where an instance has written the same before, and where a SKU is to be closed that none has opened: what the
// shop writes itself then stays. A hash that is not there is an error, and is not made. A key of another type is an
// error and stays whole.
func (l *Layout) SetStatus(ctx context.Context, c redis.Scripter, sku string, want StatusChange) (StatusMark, error) {
	if !l.HasStatus() {
		return StatusMark{}, errors.New("the layout has no status")
	}
	if !l.Fits(sku) {
		return StatusMark{}, l.partless(sku)
	}
	value, state := l.statusClosed, "closed"
	if want.Open {
		value, state = l.statusOpen[0], "open"
	}
	key := l.StatusKey(sku)
	args, mark := []any{state, value, want.Known, int64(want.Patience.Seconds())}, l.beside(key)+":status"
	if l.hasStatusField() {
		field := l.hash.of(sku, l.parts)[len(l.numbers)]
		args, mark = append(args, field), mark+":"+field
	}
	reply, err := redis.NewScript(statusScript).Run(ctx, c, []string{key, mark}, args...).Int64Slice()
	if err != nil {
		return StatusMark{}, fmt.Errorf("write the status to %q: %w", key, err)
	}
	return StatusMark{reply[0], reply[1] == 1, reply[2] == 1}, nil
}

// The mark is what was written last, how many writes there were, and when an instance said last that it is so.
const statusScript = `
local was, n, said = string.match(redis.call('GET', KEYS[2]) or '', '^(%a+) (%d+) (%d+)$')
n = tonumber(n or 0)
local open, want, known, now = was == 'open', ARGV[1] == 'open', tonumber(ARGV[3]), redis.call('TIME')[1]
local function mark() redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. n .. ' ' .. now) end
local age = math.abs(now - (said or now))
if known > 0 and n >= known or open == want or open and age < tonumber(ARGV[4]) then
	if open and want and age >= 10 then mark() end
	return {n, 0, open and 1 or 0}
end
local kind = redis.call('TYPE', KEYS[1]).ok
if #ARGV == 5 then
	if kind == 'none' then return redis.error_reply('ERR there is no such hash') end
	if kind ~= 'hash' then return redis.error_reply('WRONGTYPE the key holds a ' .. kind) end
	redis.call('HSET', KEYS[1], ARGV[5], ARGV[2])
else
	if kind ~= 'none' and kind ~= 'string' then
		return redis.error_reply('WRONGTYPE the key holds a ' .. kind)
	end
	redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
end
n = math.max(n, known) + 1
mark()
return {n, 1, want and 1 or 0}`
