-- KEYS: the hash, the order's mark. ARGV: units, the field of what is left, this attempt's token, the mark's seconds.
-- Returns -1 unknown, 0 not enough, 1 done, 2 repeated. An attempt that runs again finds its own token, and takes nothing.
local n, left = tonumber(ARGV[1]), whole(redis.call('HGET', KEYS[1], ARGV[2]))
if not left then return -1 end
local mark = redis.call('GET', KEYS[2])
if mark then return mark == ARGV[3] and 1 or 2 end
if left < n then return 0 end
redis.call('HINCRBY', KEYS[1], ARGV[2], -n)
local done = redis.pcall('SET', KEYS[2], ARGV[3], 'EX', ARGV[4])
if denied(done) then redis.call('HINCRBY', KEYS[1], ARGV[2], n) end
return denied(done) or 1
