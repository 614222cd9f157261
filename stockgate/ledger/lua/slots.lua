-- slots gives back and takes places among the orders that the upstream has at once, of all SKUs. Its keys are those of
-- a SKU that cannot be: W has token -> Unix ms when it counts no more, and S has pause, until when no instance gets a
-- place, lasts, for how long that was asked for, next, when the next order may begin by the rate, and longest, the
-- longest that a token counts for any instance, which counts itself until till. All times are of Redis' clock, in ms.
-- ARGV: events, limit, orders a second (0 = no limit), for how long a token counts, pause, unused, for how long any
--   token counts at most, n, n tokens that are given back, then tokens that are asked for
-- Reply: how many of these are granted.

local limit, rate, lasts = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local pause, unused = tonumber(ARGV[5]), tonumber(ARGV[6])
local longest, n = tonumber(ARGV[7]), tonumber(ARGV[8])
local first, last = 9 + n, #ARGV - 9
local BURST = 100 -- ms of the rate that may begin at once

local now = clock()
redis.call('ZREMRANGEBYSCORE', W, '-inf', now)
if n > 0 then redis.call('ZREM', W, unpack(ARGV, 9, 8 + n)) end
-- A time that no caller can have asked for was written while this clock ran ahead. It is cut to the longest that one
-- can ask for, or else all would wait until the clock is there again. The next order never begins later than now.
-- Instances may have different time-outs: the longest one counts until the last token of its instance is over.
local told, till = unpack(redis.call('HMGET', S, 'longest', 'till'))
told, till = tonumber(told or 0), math.min(tonumber(till or 0), now + 2 * tonumber(told or 0))
if told <= longest or till <= now then
	if told ~= longest or till < now + longest then
		redis.call('HSET', S, 'longest', string.format('%.0f', longest), 'till', string.format('%.0f', now + 2 * longest))
	end
else
	longest = told
end
local far = string.format('%.0f', now + longest)
for _, token in ipairs(redis.call('ZRANGEBYSCORE', W, '(' .. far, '+inf')) do redis.call('ZADD', W, far, token) end
local paused, asked, following = unpack(redis.call('HMGET', S, 'pause', 'lasts', 'next'))
local was, length = tonumber(paused or 0), tonumber(asked or longest)
paused = math.min(was, now + length)
following = math.min(tonumber(following or 0), now)
if now + pause > paused then paused, length = now + pause, pause end
if paused > now and paused ~= was then
	redis.call('HSET', S, 'pause', string.format('%.0f', paused), 'lasts', string.format('%.0f', length))
end
local granted = math.max(math.min(last - first + 1, limit - redis.call('ZCARD', W)), 0)
if now < paused then granted = 0 end
if rate > 0 then
	local each = 1000 / rate
	-- Whole ms: a difference of two times of today would be rounded below each, and grant nothing for ever.
	following = math.max(following - unused * each, now - math.max(BURST, math.ceil(each)))
	granted = math.max(math.min(granted, math.floor((now - following) / each)), 0)
	redis.call('HSET', S, 'next', string.format('%.3f', following + granted * each))
end
local places, till = {}, string.format('%.0f', now + lasts)
for i = 0, granted - 1 do places[2 * i + 1], places[2 * i + 2] = till, ARGV[first + i] end
if granted > 0 then redis.call('ZADD', W, unpack(places)) end
return {granted}
