-- write keeps the orders whose units were taken. ARGV: deadline, sku, n, then serial, quantity, user, payload of each
-- Reply: for each the record that was there before, or '' = it is kept now.
-- The record comes last: where one of the writes is rejected, the order is not kept.
local deadline, sku, reply = ARGV[1], ARGV[2], {}
for i = 4, #ARGV, 4 do
	local name, quantity = sku .. ' ' .. ARGV[i], ARGV[i + 1]
	local before = redis.call('HGET', R, name)
	if not before then
		redis.call('HSET', D, name, ARGV[i + 3])
		redis.call('ZADD', X, deadline, name)
		count(sku, 1)
		sum(sku, 'H', quantity)
		redis.call('HSET', R, name, 'H|' .. quantity .. '|' .. deadline .. '|' .. ARGV[i + 2])
	end
	reply[#reply + 1] = before or ''
end
return reply
