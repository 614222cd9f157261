-- set_total makes a ledger, or changes how many units and how many a person there are.
-- ARGV: events, total, limit (-1 = as it is), new (1 = a ledger may be made: the SKU was not known before)
-- Reply: false when there is no ledger and none may be made, else all numbers, and 1, or 0 when total is less than
-- held + sold and nothing was changed.

local total, limit, new = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local stock = load()
if not stock then
	if not new or redis.call('EXISTS', R, U, X) > 0 then return false end
	-- An instance that remembers an earlier ledger of this SKU must see that this is a later one: by the clock, or by
	-- what the stream still knows.
	local epoch, last = clock(), redis.call('XREVRANGE', Q, '+', '-', 'COUNT', 1)[1]
	if last then epoch = math.max(epoch, tonumber(string.match(last[1], '^%d+')) + 1) end
	stock = make(total, limit, epoch)
	if last then begin_sale(stock, stock.epoch) end -- the changes are those of a sale before
	commit(stock, 'total', change())
	return whole(stock, 1)
end
if limit < 0 then limit = stock.limit end
if total < stock.held + stock.sold then
	return whole(stock, 0)
end
if total ~= stock.total or limit ~= stock.limit then
	stock.total, stock.limit = total, limit
	commit(stock, 'total', change())
end
return whole(stock, 1)
