-- KEYS: the hash, the order's mark. ARGV: units, what is left's field, the mark's value, its seconds.
-- Returns -1 unknown, 0 not enough, 1 done, 2 repeated.
local n = tonumber(ARGV[1])
if not whole(redis.call('HGET', KEYS[1], ARGV[2])) then return -1 end
if redis.call('EXISTS', KEYS[2]) == 1 then return 2 end
if redis.call('HINCRBY', KEYS[1], ARGV[2], -n) < 0 then
	redis.call('HINCRBY', KEYS[1], ARGV[2], n)
	return 0
end
local done = redis.pcall('SET', KEYS[2], ARGV[3], 'NX', 'EX', ARGV[4])
if denied(done) then redis.call('HINCRBY', KEYS[1], ARGV[2], n) end
return denied(done) or 1
