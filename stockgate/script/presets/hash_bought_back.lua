-- KEYS and ARGV as for taking; the last of ARGV is the order where there is a list. Returns the units, or 0 when so many
-- were never taken, or when the order has left the list: the program that took it from there is making it.
local n = tonumber(ARGV[1])
local bought = whole(redis.call('HGET', KEYS[1], ARGV[3]))
if not bought or bought < n then return 0 end
if KEYS[2] and redis.call('LREM', KEYS[2], 1, ARGV[#ARGV]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], ARGV[3], -n)
return n
