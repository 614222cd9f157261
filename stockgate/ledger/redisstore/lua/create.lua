-- create makes a ledger with its hours, where there is none and, as far as its keys tell, never was one.
-- ARGV: events, total, limit, opens, closes
-- Reply: all numbers, and 1 where it was made, 0 where there is one, of which nothing was changed.

local stock = load()
if stock then
	return whole(stock, 0)
end
if redis.call('EXISTS', R, U, X, Q) > 0 then
	fault(S, 'it is gone while its history is still there: make it anew by hand')
end
stock = make(tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(redis.call('TIME')[1]))
stock.opens, stock.closes = tonumber(ARGV[4]), tonumber(ARGV[5])
commit(stock, 'total', change())
return whole(stock, 1)
