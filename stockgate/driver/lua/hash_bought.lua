-- KEYS: the hash, and the list of orders where there is one. ARGV: units, count's field, bought's field, the order,
-- status' field, the open statuses. Returns the units, or 0.
local n = tonumber(ARGV[1])
local v = redis.call('HMGET', KEYS[1], ARGV[2], ARGV[3], ARGV[5])
local count, bought, open = whole(v[1]), whole(v[2]), false
for i = 6, #ARGV do open = open or v[3] == ARGV[i] end
if not open or not count or not bought or bought + n > count then return 0 end
redis.call('HINCRBY', KEYS[1], ARGV[3], n)
local done = KEYS[2] and redis.pcall('LPUSH', KEYS[2], ARGV[4])
if denied(done) then redis.call('HINCRBY', KEYS[1], ARGV[3], -n) end
return denied(done) or n
