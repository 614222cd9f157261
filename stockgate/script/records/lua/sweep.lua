-- sweep leases overdue orders of some SKUs, and forgets those whose time has come. ARGV: now, lease, limit, then SKUs
-- Reply: the SKU, serial and record of each that was leased.
local now, lease, wanted, reply = ARGV[1], ARGV[2], {}, {}
for i = 4, #ARGV do wanted[ARGV[i]] = true end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', X, '-inf', now, 'LIMIT', 0, ARGV[3])) do
	local sku, serial = string.match(name, '^(%S+) (.*)$')
	local record = redis.call('HGET', R, name)
	local state, quantity = 'X', '0'
	if record then state, quantity = decode(record) end
	if state == 'H' then
		if wanted[sku] then
			redis.call('ZADD', X, lease, name)
			reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = sku, serial, record
		end
	elseif redis.call('ZSCORE', O, name) then
		redis.call('ZADD', X, lease, name)
	else
		sum(sku, state, -quantity)
		redis.call('HDEL', R, name)
		redis.call('HDEL', D, name)
		redis.call('HDEL', T, name)
		redis.call('ZREM', X, name)
	end
end
return reply
