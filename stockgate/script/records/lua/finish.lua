-- finish decides orders of one SKU. ARGV: now, keep, kept (of what is confirmed), op, sku, then serials
-- Reply: what each came to, as finish.lua of the ledger has it.
local CHANGED, ALREADY, WAS_RELEASED, WAS_SOLD, NOT_FOUND = 1, 2, -4, -7, -8
local turns = {
	confirm = {none = NOT_FOUND, H = 'C', C = ALREADY, X = WAS_RELEASED, R = WAS_RELEASED},
	release = {none = 'X', H = 'X', C = WAS_SOLD, X = ALREADY, R = ALREADY},
	refund = {none = NOT_FOUND, H = 'R', C = 'R', X = WAS_RELEASED, R = ALREADY},
}
local now, keep, kept, turn, sku, reply = ARGV[1], ARGV[2], ARGV[3], turns[ARGV[4]], ARGV[5], {}
for i = 6, #ARGV do
	local name = sku .. ' ' .. ARGV[i]
	local record, from, quantity, user, _ = redis.call('HGET', R, name), 'none', '0', ''
	if record then from, quantity, _, user = decode(record) end
	local to = turn[from]
	if type(to) == 'string' then
		local till = to == 'C' and kept or keep
		sum(sku, from, -quantity)
		sum(sku, to, quantity)
		redis.call('HSET', R, name, to .. '|' .. quantity .. '|' .. till .. '|' .. user)
		redis.call('ZADD', X, till, name)
		if from == 'none' then count(sku, 1) end
		if to ~= 'C' and from ~= 'none' then
			redis.call('HSET', T, name, '0|' .. now .. '|0')
			redis.call('ZADD', O, now, name)
		end
		to = CHANGED
	end
	reply[#reply + 1] = to
end
return reply
