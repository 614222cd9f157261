-- set_state opens, pauses, ends or freezes. Freezing raises the epoch each time it is asked for.
-- ARGV: events, state
-- Reply: false without a ledger, else all numbers.

local state = ARGV[2]
local stock = load()
if not stock then
	return false
end
if state == 'frozen' then
	stock.epoch = stock.epoch + 1
end
if state == 'frozen' or state ~= stock.state then
	stock.state = state
	commit(stock, 'state', change())
end
return whole(stock, 1)
