-- KEYS: the counter. ARGV: units. Returns -1 unknown, 0 not enough, 1 done.
local left = whole(redis.call('GET', KEYS[1]))
if not left then return -1 end
if left < tonumber(ARGV[1]) then return 0 end
redis.call('DECRBY', KEYS[1], ARGV[1])
return 1
