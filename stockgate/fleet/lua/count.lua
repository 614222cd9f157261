-- count adds what an instance has admitted of some keys of a rate, and tells what all instances have.
-- KEYS: of each key when its burst is whole again, in microseconds of this clock
-- ARGV: of each key how many tokens were taken (-1 = the fleet forgets what was), how many microseconds earn one, and
-- how many a key can owe at most
-- Reply: of each key for how many microseconds it is not whole.
--
-- A key that owes more than it can was written by a clock that ran ahead.

local clock = redis.call('TIME')
local now, reply = clock[1] * 1000000 + clock[2], {}
for i, key in ipairs(KEYS) do
  local tokens, owed = tonumber(ARGV[3 * i - 2]), (tonumber(redis.call('GET', key) or '') or now) - now
  owed = math.min(math.max(owed, 0), tonumber(ARGV[3 * i]))
  if tokens < 0 then
    redis.call('DEL', key)
    owed = 0
  elseif tokens > 0 then
    owed = owed + tokens * ARGV[3 * i - 1]
    redis.call('SET', key, string.format('%.0f', now + owed), 'PX', string.format('%.0f', owed / 1000 + 1))
  end
  reply[i] = math.ceil(owed)
end
return reply
