-- KEYS: the hash, and the list of orders where there is one. ARGV: units, count's field, bought's field, status' field
-- ('' = none), the statuses that mean "on sale" with commas between them; for the list: user, SKU, Unix seconds.
-- Returns -2 not on sale, -1 unknown, 0 not enough, or {units, the order as it stands in the list}.
local n = tonumber(ARGV[1])
local v = redis.call('HMGET', KEYS[1], ARGV[2], ARGV[3])
local count, bought = whole(v[1]), whole(v[2])
if not count and not bought then return -1 end
if not count or not bought then error('the hash has not both ' .. ARGV[2] .. ' and ' .. ARGV[3]) end
if ARGV[4] and ARGV[4] ~= '' then
	local status = redis.call('HGET', KEYS[1], ARGV[4])
	if not status or not string.find(',' .. ARGV[5] .. ',', ',' .. status .. ',', 1, true) then return -2 end
end
if bought + n > count then return 0 end

-- Shops number users and goods: what is a number stays one.
local function json(v)
	if v == '0' or string.find(v, '^-?[1-9]%d*$') and #v <= 18 then return v end
	return cjson.encode(v)
end

local order
if KEYS[2] then
	order = '{"uid":' .. json(ARGV[6]) .. ',"goods_id":' .. json(ARGV[7]) .. ',"buy_num":' .. ARGV[1]
		.. ',"order_time":' .. ARGV[8] .. '}'
end
redis.call('HINCRBY', KEYS[1], ARGV[3], n)
local done = order and redis.pcall('LPUSH', KEYS[2], order)
if denied(done) then redis.call('HINCRBY', KEYS[1], ARGV[3], -n) end
return denied(done) or {n, order}
