-- KEYS: the counter, the fence. ARGV: units (below 0 to give back), the number that the lock's holder drew.
-- Returns -2 when somebody has drawn a later number, -1 unknown, 0 not enough, 1 done.
if redis.call('GET', KEYS[2]) ~= ARGV[2] then return -2 end
local n, left = tonumber(ARGV[1]), whole(redis.call('GET', KEYS[1]))
if not left then return -1 end
if n > 0 and left < n then return 0 end
redis.call('DECRBY', KEYS[1], n)
return 1
