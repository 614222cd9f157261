-- KEYS: the variant's counter, the product's. ARGV: units. Returns -1 unknown, 0 not enough, 1 done. The product's
-- number follows and is never asked.
local left = whole(redis.call('GET', KEYS[1]))
if not left then return -1 end
local n, product = tonumber(ARGV[1]), whole(redis.call('GET', KEYS[2]))
if left < n then return 0 end
if product then redis.call('DECRBY', KEYS[2], n) end
local done = redis.pcall('DECRBY', KEYS[1], n)
if denied(done) and product then redis.call('DECRBY', KEYS[2], -n) end
return denied(done) or 1
