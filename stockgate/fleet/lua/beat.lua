-- beat says that an instance lives and how it is, and tells it which others live, and what operators change and ask.
-- KEYS: a sorted set of the instances by their latest heartbeat, in milliseconds of this clock; a hash of their
-- summaries; a hash of the changes; a hash of the tasks
-- ARGV: the instance, for how many milliseconds one lives after a heartbeat, its summary, the version of the changes
-- that it knows, that of the tasks, for how many milliseconds a summary is listed, how many are listed at most, 1 = take
-- those off the list that are old
-- Reply: this clock's seconds and microseconds, the instance's heartbeat before this one (false = none), all instances
-- and their heartbeats in turn, the versions of the changes and of the tasks, and where one is another than what is
-- known, all changes or all tasks, else nothing.

local clock = redis.call('TIME')
local now, life = clock[1] * 1000 + math.floor(clock[2] / 1000), tonumber(ARGV[2])
local before = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[1], string.format('%d', now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now - life))
-- A heartbeat that is to come was seen by a clock that went back; by a little, and an instance that lives beats again.
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%d', now + life), '+inf')
redis.call('PEXPIRE', KEYS[1], 2 * life)

local listed, shown = tonumber(ARGV[6]), redis.call('HLEN', KEYS[2])
if ARGV[8] == '1' or shown > tonumber(ARGV[7]) then
  local all = redis.call('HGETALL', KEYS[2])
  for i = 1, #all, 2 do
    local at = tonumber(string.match(all[i + 1], '^%d+'))
    if not at or at <= now - listed or at > now + listed then
      redis.call('HDEL', KEYS[2], all[i])
      shown = shown - 1
    end
  end
end
if shown < tonumber(ARGV[7]) or redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then
  redis.call('HSET', KEYS[2], ARGV[1], string.format('%d', now) .. ' ' .. ARGV[3])
  redis.call('PEXPIRE', KEYS[2], 2 * listed)
end

local reply = {clock[1], clock[2], before, redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')}
for i = 3, 4 do reply[i + 2] = redis.call('HGET', KEYS[i], '#version') or '' end
for i = 3, 4 do reply[i + 4] = reply[i + 2] ~= ARGV[i + 1] and redis.call('HGETALL', KEYS[i]) end
return reply
