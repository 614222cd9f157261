-- KEYS as for taking. ARGV: the user, the unit. Returns {0} when the user has nothing, {1} done.
redis.call('LLEN', KEYS[1])
if redis.call('SREM', KEYS[2], ARGV[1]) == 0 then return {0} end
redis.call('RPUSH', KEYS[1], ARGV[2])
return {1}
