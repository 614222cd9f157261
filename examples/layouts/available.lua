-- KEYS[1] = the SKU's hash, ARGV[1] = the SKU. Returns {left, on sale}, or nil for a SKU that does not exist.
local stock, locked, on = unpack(redis.call('HMGET', KEYS[1], 'stock', 'locked', 'on'))
if not stock then return nil end
return {tonumber(stock) - tonumber(locked or 0), on == 'yes' and 1 or 0}
