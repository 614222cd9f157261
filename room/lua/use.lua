-- use counts passes with which an order was placed, each once.
-- KEYS: the room, passes that are good, passes that were used, passes that an order is expected of
-- ARGV: the users
-- Reply: how many there were.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', now))
local used, late = 0, 0
for i = 1, #ARGV do
  local ends = redis.call('ZSCORE', KEYS[2], ARGV[i])
  if ends then
    redis.call('ZREM', KEYS[2], ARGV[i])
    redis.call('ZADD', KEYS[3], ends, ARGV[i])
    used = used + 1
    if redis.call('ZREM', KEYS[4], ARGV[i]) == 0 then late = late + 1 end -- it was counted as expired
  end
end
if used > 0 and redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'used', used)
  if late > 0 then redis.call('HINCRBY', KEYS[1], 'expired', -late) end
end
return used
