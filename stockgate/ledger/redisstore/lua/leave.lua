-- leave takes the caller's mark away, when it has found what it has seen: nobody waits for it any more.
-- ARGV: events

local stock = load()
if stock then
	if #stock.marks > 0 then redis.call('HSET', S, unpack(stock.marks)) end
	stock.marks = {}
	redis.call('HDEL', S, 'm:' .. WHO)
end
