-- remove ends a change before its time, unless another one has taken its place. Its entry stays as long as it would have
-- stayed, in the state "off": so an instance that knows the change and not its end does not put it back.
-- KEYS: a hash of the changes
-- ARGV: the name, its number, text that is random
-- Reply: 1 when this call has ended it, 2 when another one stands in its place, else 0.

local found = redis.call('HGET', KEYS[1], ARGV[1])
if not found then return 0 end
local number, times, state = string.match(found, '^(%d+)( %d+ %d+ )(%a+) ')
if number ~= ARGV[2] then return state == 'on' and 2 or 0 end
if state ~= 'on' then return 0 end
local last = string.match(redis.call('HGET', KEYS[1], '#version'), '^%d+')
redis.call('HSET', KEYS[1], ARGV[1], number .. times .. 'off ', '#version', last .. ' ' .. ARGV[3])
return 1
