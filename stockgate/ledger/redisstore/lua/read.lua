-- read tells what fields of one key of the ledger hold: records of serials, or the units of users.
-- ARGV: the place of the key among KEYS, n, n fields
-- Reply: false without a ledger, else the hint, and n values, each nothing where there is none. The state is verifying
-- also where the SKU is not on sale: a server that took over may lack the last orders of that, too.

local n = tonumber(ARGV[2])
local stock = load()
if not stock then
	return false
end
if RUN ~= '' and stock.run ~= '' and stock.run ~= RUN and stock.state ~= 'frozen' then stock.state = 'verifying' end
local reply = hint(stock)
for i, value in ipairs(redis.call('HMGET', KEYS[tonumber(ARGV[1])], unpack(ARGV, 3, 2 + n))) do
	reply[HINT + i] = value
end
return reply
