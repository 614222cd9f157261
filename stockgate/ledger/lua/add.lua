-- add changes the total by a difference, once for each id.
-- ARGV: events, difference, id ("" = none), how many ids are remembered
-- Reply: false without a ledger, else all numbers, and 1 (done, now or before), 0 when the new total would be less than
-- held + sold, 2 when the id belongs to another difference. Then nothing was changed.
--
-- The field added of S holds the ids with their differences, id=difference, with spaces between, the newest last.

local difference, id, most = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local stock = load()
if not stock then
	return false
end
local added = redis.call('HGET', S, 'added') or ''
local words, c = {}, change()
for word in string.gmatch(added, '%S+') do
	words[#words + 1] = word
	local before, by = string.match(word, '^(.*)=(%-?%d+)$')
	if id ~= '' and before == id then
		return whole(stock, tonumber(by) == difference and 1 or 2)
	end
end
if stock.total + difference < stock.held + stock.sold then
	return whole(stock, 0)
end
stock.total = stock.total + difference
if id ~= '' then
	words[#words + 1] = id .. '=' .. ARGV[2]
	push(c.fields, 'added', words[#words])
end
commit(stock, 'add', c)
if id ~= '' then
	redis.call('HSET', S, 'added', table.concat(words, ' ', math.max(1, #words - most + 1)))
end
return whole(stock, 1)
