-- KEYS: the hash. ARGV: units, total's field, ordered's field. Returns -1 unknown, 0 not enough, or the units.
local n = tonumber(ARGV[1])
local v = redis.call('HMGET', KEYS[1], ARGV[2], ARGV[3])
local total, ordered = whole(v[1]), whole(v[2])
if not total and not ordered then return -1 end
if not total or not ordered then error('the hash has not both ' .. ARGV[2] .. ' and ' .. ARGV[3]) end
if ordered + n > total then return 0 end
redis.call('HINCRBY', KEYS[1], ARGV[3], n)
return n
