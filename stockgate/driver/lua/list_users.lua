-- KEYS: the list of units, the set of users. ARGV: the user. Returns {-1} none, {0} repeated, {1, the unit} done.
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return {0} end
local unit = redis.call('LPOP', KEYS[1])
if not unit then return {-1} end
redis.call('SADD', KEYS[2], ARGV[1])
return {1, unit}
