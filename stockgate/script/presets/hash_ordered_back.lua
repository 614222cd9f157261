-- KEYS and ARGV as for taking. Returns the units, or 0 when so many were never taken.
local n = tonumber(ARGV[1])
local ordered = whole(redis.call('HGET', KEYS[1], ARGV[3]))
if not ordered or ordered < n then return 0 end
redis.call('HINCRBY', KEYS[1], ARGV[3], -n)
return n
