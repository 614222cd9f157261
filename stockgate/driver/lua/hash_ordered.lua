-- KEYS: the hash. ARGV: units, total's field, ordered's field. Returns the units, or 0.
local n = tonumber(ARGV[1])
local v = redis.call('HMGET', KEYS[1], ARGV[2], ARGV[3])
local total, ordered = whole(v[1]), whole(v[2])
if not total or not ordered or ordered + n > total then return 0 end
redis.call('HINCRBY', KEYS[1], ARGV[3], n)
return n
