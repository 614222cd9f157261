-- claim counts passes that users have claimed. A user who has one already keeps it.
-- KEYS: the room, passes that are good, passes that were used, passes that an order is expected of, passes of people
-- who were called lately
-- ARGV: until when a new pass is good (Unix ms), for how many ms an order is expected, and a pass may be claimed, the
-- users, each with the class of its wait and from when it could claim a pass (Unix ms)
-- Reply: nil where the room is not there, else until when the pass of each user is good.

if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local reply, new = {}, 0
for i = 3, #ARGV, 3 do
  local has = redis.call('ZSCORE', KEYS[2], ARGV[i]) or redis.call('ZSCORE', KEYS[3], ARGV[i])
  if not has or tonumber(has) <= now then
    has, new = ARGV[1], new + 1
    redis.call('ZREM', KEYS[3], ARGV[i])
    redis.call('ZADD', KEYS[2], has, ARGV[i])
    redis.call('HINCRBY', KEYS[1], 'w' .. ARGV[i + 1], 1)
    redis.call('ZADD', KEYS[4], string.format('%.0f', now + tonumber(ARGV[2])), ARGV[i])
    redis.call('ZADD', KEYS[5], string.format('%.0f', ARGV[i + 2] + tonumber(ARGV[2])), ARGV[i])
  end
  reply[#reply + 1] = string.format('%.0f', tonumber(has))
end
if new > 0 then redis.call('HINCRBY', KEYS[1], 'claimed', new) end
return reply
