-- leave takes the caller's mark away, when it has found what it has seen: no instance waits for it any more. A caller
-- that has not heard of the stock's epoch keeps its mark: it may know what the stock has lost, and tells that first.
-- ARGV: events

local stock = load()
if stock then
	if #stock.marks > 0 then redis.call('HSET', S, unpack(stock.marks)) end
	stock.marks = {}
	local epoch = tonumber(EPOCH)
	if epoch == 0 or epoch >= stock.epoch then redis.call('HDEL', S, 'm:' .. WHO) end
end
