-- KEYS and ARGV as for taking. Returns -1 unknown, 1 done.
if not whole(redis.call('GET', KEYS[1])) then return -1 end
redis.call('INCRBY', KEYS[1], ARGV[1])
return 1
