-- set_schedule says from when until when the SKU is on sale, where its state is on.
-- ARGV: events, opens, closes (Unix ms; 0 = no such bound)
-- Reply: false without a ledger, else all numbers.

local opens, closes = tonumber(ARGV[2]), tonumber(ARGV[3])
local stock = load()
if not stock then
	return false
end
if opens ~= stock.opens or closes ~= stock.closes then
	stock.opens, stock.closes = opens, closes
	commit(stock, 'hours', change())
end
return whole(stock, 1)
