-- units tells how many units users have, held and sold.
-- ARGV: n, n users
-- Reply: false without a ledger, else the hint and n numbers.

local n = tonumber(ARGV[1])
local stock = load()
if not stock then
	return false
end
local reply = hint(stock)
for i, units in ipairs(redis.call('HMGET', U, unpack(ARGV, 2, 1 + n))) do
	reply[HINT + i] = units and number(U, units, 'units of ', ARGV[1 + i]) or 0
end
return reply
