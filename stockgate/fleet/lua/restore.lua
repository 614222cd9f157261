-- restore puts changes back that Redis has lost. Of one name the higher number stands, and of one number the end.
-- KEYS: a hash of the changes
-- ARGV: for how many milliseconds the hash is kept, text that is random, and of each change its name and what is kept of
-- it
-- Reply: how many were put back.

local clock = redis.call('TIME')
local now, restored = clock[1] * 1000 + math.floor(clock[2] / 1000), 0
local last = tonumber(string.match(redis.call('HGET', KEYS[1], '#version') or '0', '^%d+'))
for i = 3, #ARGV, 2 do
  local number, gone, state = string.match(ARGV[i + 1], '^(%d+) %d+ (%d+) (%a+) ')
  local there, how = string.match(redis.call('HGET', KEYS[1], ARGV[i]) or '0 0 0 on ', '^(%d+) %d+ %d+ (%a+) ')
  number, there = tonumber(number), tonumber(there) or 0 -- 0 = what is there cannot be read
  if tonumber(gone) > now and (number > there or number == there and state == 'off' and how == 'on') then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    last, restored = math.max(last, number), restored + 1
  end
end
if restored > 0 then
  redis.call('HSET', KEYS[1], '#version', string.format('%d ', last) .. ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return restored
