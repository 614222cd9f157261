-- KEYS and ARGV as for taking. Returns 0 when the user has nothing, 1 done.
if not whole(redis.call('GET', KEYS[1])) then return 0 end
if redis.call('SREM', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('INCR', KEYS[1])
return 1
