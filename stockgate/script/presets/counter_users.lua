-- KEYS: the counter, the set of users. ARGV: the user. Returns -2 unknown, -1 none, 0 repeated, 1 done.
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 0 end
local left = whole(redis.call('GET', KEYS[1]))
if not left then return -2 end
if left < 1 then return -1 end
redis.call('SADD', KEYS[2], ARGV[1])
local done = redis.pcall('DECR', KEYS[1])
if denied(done) then redis.call('SREM', KEYS[2], ARGV[1]) end
return denied(done) or 1
