-- KEYS: the counter, the lock. ARGV: units. Returns -2 while the lock is held, -1 unknown, 0 not enough, 1 done.
-- A script is one step: no holder of the lock can come between the look at it and the writing.
if redis.call('EXISTS', KEYS[2]) == 1 then return -2 end
local left = whole(redis.call('GET', KEYS[1]))
if not left then return -1 end
if left < tonumber(ARGV[1]) then return 0 end
redis.call('DECRBY', KEYS[1], ARGV[1])
return 1
