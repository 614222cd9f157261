-- remove takes a change away, unless another one has taken its place.
-- KEYS: a hash of the changes
-- ARGV: the name, its number
-- Reply: whether it was there, 1 or 0.

local found = redis.call('HGET', KEYS[1], ARGV[1])
if not found or string.match(found, '^%d+') ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], '#version', string.format('%d', redis.call('HGET', KEYS[1], '#version') + 1))
return 1
