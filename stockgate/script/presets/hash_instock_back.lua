-- KEYS and ARGV as for taking. Returns 1 done, or 0 when the mark is not this attempt's any more. The mark is then gone:
-- to the shop the order has never been.
if redis.call('GET', KEYS[2]) ~= ARGV[3] or not whole(redis.call('HGET', KEYS[1], ARGV[2])) then return 0 end
redis.call('DEL', KEYS[2])
local done = redis.pcall('HINCRBY', KEYS[1], ARGV[2], ARGV[1])
if denied(done) then redis.call('SET', KEYS[2], ARGV[3], 'EX', ARGV[4]) end
return denied(done) or 1
