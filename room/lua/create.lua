-- create makes a room that is not there, or the room of the next sale in place of one that is over.
-- KEYS: the room, its steps, the sets of passes, and people
-- ARGV: starts of the sale (Unix ms), how many fields follow, the fields and their values in turn, the steps
-- Reply: 1 where it was made.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if redis.call('EXISTS', KEYS[1]) == 1 then
  local ends = tonumber(redis.call('HGET', KEYS[1], 'ends') or '0')
  if ends == 0 or now < ends or tonumber(ARGV[1]) < ends then return 0 end
  -- It tells the two rooms apart, also on tickets, which have seconds.
  now = math.max(now, 1000 + tonumber(redis.call('HGET', KEYS[1], 'opened') or '0'))
  redis.call('DEL', unpack(KEYS))
end
local n = tonumber(ARGV[2])
for i = 3, 2 * n + 1, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('HSETNX', KEYS[1], 'opened', string.format('%.0f', now))
for i = 2 * n + 3, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
return 1
