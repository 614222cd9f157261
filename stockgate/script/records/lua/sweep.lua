-- sweep leases overdue orders of all SKUs, and forgets those whose time has come. ARGV: now, lease, limit
-- Reply: the SKU, serial and record of each that was leased.
local now, lease, reply = ARGV[1], ARGV[2], {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', X, '-inf', now, 'LIMIT', 0, ARGV[3])) do
	local sku, serial = string.match(name, '^(%S+) (.*)$')
	local record = redis.call('HGET', R, name)
	local state, quantity = 'X', '0'
	if record then state, quantity = decode(record) end
	if state == 'H' then
		redis.call('ZADD', X, lease, name)
		local n = #reply
		reply[n + 1], reply[n + 2], reply[n + 3] = sku, serial, record
	elseif redis.call('ZSCORE', O, name) then
		redis.call('ZADD', X, lease, name)
	else
		sum(sku, state, -quantity)
		redis.call('HDEL', R, name)
		redis.call('HDEL', D, name)
		redis.call('HDEL', T, name)
		redis.call('ZREM', X, name)
		if record then count(sku, -1) end
	end
end
return reply
