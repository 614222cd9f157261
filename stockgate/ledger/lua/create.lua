-- create makes a ledger with its hours, where there is none and, as far as its keys tell, never was one.
-- ARGV: events, total, limit, opens, closes, new (1 = a ledger may be made: the SKU was not known before)
-- Reply: false when there is no ledger and none may be made, else all numbers, and 1 where it was made, 0 where there
-- is one, of which nothing was changed.

local stock = load()
if stock then
	return whole(stock, 0)
end
if ARGV[6] ~= '1' or redis.call('EXISTS', R, U, X, Q) > 0 then
	return false
end
stock = make(tonumber(ARGV[2]), tonumber(ARGV[3]), clock())
stock.opens, stock.closes = tonumber(ARGV[4]), tonumber(ARGV[5])
commit(stock, 'total', change())
return whole(stock, 1)
