-- KEYS: the list of units, the set of users. ARGV: the user. Returns {-2} unknown, {-1} none, {0} repeated, {1, the unit}
-- done. Redis forgets an empty list: where the set is there, the list is sold out.
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return {0} end
if redis.call('LLEN', KEYS[1]) == 0 then return {redis.call('EXISTS', KEYS[2]) - 2} end
redis.call('SADD', KEYS[2], ARGV[1])
local unit = redis.pcall('LPOP', KEYS[1])
if denied(unit) then redis.call('SREM', KEYS[2], ARGV[1]) end
return denied(unit) or {1, unit}
