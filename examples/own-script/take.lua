-- KEYS: the counter. ARGV: units. Returns what is left, -1 when there is not enough, nothing when there is no such stock.
local left = redis.call('GET', KEYS[1])
if not left then return false end
if tonumber(left) < tonumber(ARGV[1]) then return -1 end
return redis.call('DECRBY', KEYS[1], ARGV[1])
