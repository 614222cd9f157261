-- restore puts changes back that Redis has lost.
-- KEYS: a hash of the changes
-- ARGV: the version that the instance knows, for how many milliseconds the hash is kept, and of each change its name and
-- what is kept of it
-- Reply: nothing of interest.

if tonumber(redis.call('HGET', KEYS[1], '#version') or '0') >= tonumber(ARGV[1]) then return 0 end
for i = 3, #ARGV, 2 do
  local there = tonumber(string.match(redis.call('HGET', KEYS[1], ARGV[i]) or '0', '^%d+'))
  if there < tonumber(string.match(ARGV[i + 1], '^%d+')) then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
redis.call('HSET', KEYS[1], '#version', string.format('%d', ARGV[1] + 1))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
