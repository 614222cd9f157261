-- slots gives back and takes places among the orders that the upstream has at once, of all SKUs. Its keys are those of
-- a SKU that cannot be: W has token -> Unix ms when it counts no more, and S has pause, until when no instance gets a
-- place, and next, when the next order may begin by the rate. All times are of Redis' clock, in ms.
-- ARGV: events, limit, orders a second (0 = no limit), for how long a token counts, pause, unused, n, n tokens that are
--   given back, then tokens that are asked for
-- Reply: how many of these are granted.

local limit, rate, lasts = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local pause, unused, n = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local first, last = 8 + n, #ARGV - 9
local BURST = 100 -- ms of the rate that may begin at once

local now = clock()
redis.call('ZREMRANGEBYSCORE', W, '-inf', now)
if n > 0 then redis.call('ZREM', W, unpack(ARGV, 8, 7 + n)) end
local paused, following = unpack(redis.call('HMGET', S, 'pause', 'next'))
paused, following = tonumber(paused or 0), tonumber(following or 0)
if pause > 0 then
	paused = math.max(paused, now + pause)
	redis.call('HSET', S, 'pause', string.format('%.0f', paused))
end
local granted = math.max(math.min(last - first + 1, limit - redis.call('ZCARD', W)), 0)
if now < paused then granted = 0 end
if rate > 0 then
	local each = 1000 / rate
	following = math.max(following - unused * each, now - math.max(BURST, each))
	granted = math.max(math.min(granted, math.floor((now - following) / each)), 0)
	redis.call('HSET', S, 'next', string.format('%.3f', following + granted * each))
end
local places, till = {}, string.format('%.0f', now + lasts)
for i = 0, granted - 1 do places[2 * i + 1], places[2 * i + 2] = till, ARGV[first + i] end
if granted > 0 then redis.call('ZADD', W, unpack(places)) end
return {granted}
