-- beat tells the fleet how one instance is, and tells the instance what operators have changed.
-- KEYS: a hash of the instances, a hash of the changes
-- ARGV: the instance, its summary, the version of the changes that it knows, for how many milliseconds an instance is
-- listed, how many instances are listed at most, "1" = take those off the list that are gone
-- Reply: this clock in milliseconds, the version of the changes, and where that is another one all changes in turn.

local clock = redis.call('TIME')
local now, life = clock[1] * 1000 + math.floor(clock[2] / 1000), tonumber(ARGV[4])
if ARGV[6] == '1' or redis.call('HLEN', KEYS[1]) > tonumber(ARGV[5]) then
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local at = tonumber(string.match(all[i + 1], '^%d+'))
    if not at or at <= now - life or at > now + life then redis.call('HDEL', KEYS[1], all[i]) end
  end
end
if redis.call('HLEN', KEYS[1]) < tonumber(ARGV[5]) or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%d', now) .. ' ' .. ARGV[2])
  redis.call('PEXPIRE', KEYS[1], 2 * life)
end
local version = redis.call('HGET', KEYS[2], '#version') or '0'
if version == ARGV[3] then return {string.format('%d', now), version} end
return {string.format('%d', now), version, redis.call('HGETALL', KEYS[2])}
