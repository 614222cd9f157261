-- recreate makes a ledger again whose keys are gone, all or some of them. It is frozen: orders must be adopted, and the
-- instances tell what they know of orders of before, in whichever epoch they were made: born is 0.
-- It is the same sale of the SKU, as far as S or the caller knows which one that is.
-- ARGV: events, total, limit, none (1 = an operator says that no order exists)
-- Reply: all numbers, and 1 where it was made, now or by a call before; 0 where there is a whole ledger, of which
-- nothing was changed; or how many records of orders are left, alone, where there should be none.

local total, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local whole_ledger, stock = pcall(load)
if whole_ledger and stock then
	local again = stock.state == 'frozen' and stock.why == 'operator' and stock.born == 0 and stock.total == total
	return whole(stock, again and 1 or 0)
end
local left = redis.call('TYPE', R).ok == 'hash' and redis.call('HLEN', R) or 0
if ARGV[4] == '1' and left > 0 then
	return {left}
end
-- kept is a number that S still has, or 0.
local function kept(field)
	local text = redis.call('TYPE', S).ok == 'hash' and redis.call('HGET', S, field) or ''
	return tonumber(string.match(text, '^%d+$') or 0)
end

local before, sale = kept('epoch'), kept('sale')
redis.call('DEL', S, R, U, X)
redis.call('DEL', unpack(KEYS, 6, 8)) -- orders that waited are held again by those that know them, and not sent
local epoch, last = math.max(clock(), before + 1), redis.call('XREVRANGE', Q, '+', '-', 'COUNT', 1)[1]
if last then epoch = math.max(epoch, tonumber(string.match(last[1], '^%d+')) + 1) end
stock = make(total, limit, epoch)
stock.state, stock.why, stock.born = 'frozen', 'operator', 0
stock.ver = 1 -- version 1 begins another ledger, and this one goes on
push(stock.marks, 'born', '0')
if sale > stock.sale then begin_sale(stock, sale) end
push(stock.marks, 'why', 'operator')
push(stock.marks, 'was', 'frozen')
push(stock.marks, 'since', digits(clock()))
local c = change()
push(c.fields, 'why', 'operator')
commit(stock, 'state', c)
return whole(stock, 1)
