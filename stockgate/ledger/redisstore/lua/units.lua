-- units tells how many units a user has, held and sold.
-- ARGV: the user
-- Reply: false without a ledger, else the hint and the units.

local stock = load()
if not stock then
	return false
end
local reply = hint(stock)
reply[HINT + 1] = number(U, redis.call('HGET', U, ARGV[1]) or '0', 'units of ', ARGV[1])
return reply
