-- beat tells the fleet how one instance is, and tells the instance what operators have changed and ask.
-- KEYS: a hash of the instances, a hash of the changes, a hash of the tasks
-- ARGV: the instance, its summary, the version of the changes that it knows, that of the tasks, for how many
-- milliseconds an instance is listed, how many instances are listed at most, "1" = take those off the list that are gone
-- Reply: this clock in milliseconds, the versions of the changes and of the tasks, and where one is another than what
-- is known, all changes or all tasks, else nothing.

local clock = redis.call('TIME')
local now, life = clock[1] * 1000 + math.floor(clock[2] / 1000), tonumber(ARGV[5])
local listed = redis.call('HLEN', KEYS[1])
if ARGV[7] == '1' or listed > tonumber(ARGV[6]) then
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local at = tonumber(string.match(all[i + 1], '^%d+'))
    if not at or at <= now - life or at > now + life then
      redis.call('HDEL', KEYS[1], all[i])
      listed = listed - 1
    end
  end
end
if listed < tonumber(ARGV[6]) or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%d', now) .. ' ' .. ARGV[2])
  redis.call('PEXPIRE', KEYS[1], 2 * life)
end
local reply = {string.format('%d', now)}
for i = 2, 3 do reply[i] = redis.call('HGET', KEYS[i], '#version') or '' end
for i = 2, 3 do reply[i + 2] = reply[i] ~= ARGV[i + 1] and redis.call('HGETALL', KEYS[i]) end
return reply
