-- KEYS and ARGV as for taking. Returns -2 while the lock is held, -1 unknown, 1 done.
if redis.call('EXISTS', KEYS[2]) == 1 then return -2 end
if not whole(redis.call('GET', KEYS[1])) then return -1 end
redis.call('INCRBY', KEYS[1], ARGV[1])
return 1
