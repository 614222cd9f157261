-- archive forgets the orders of a sale that is over, once somebody else has them all. The ledger stays, without units,
-- ended, and in a later epoch: what instances tell of orders of before is passed over from now on. The next sale of the
-- SKU begins with that epoch.
-- ARGV: events, epoch and ver of what the caller has
-- Reply: false without a ledger, else all numbers, and 1 where it is archived, now or before; 2 where it is not at that
-- version; 3 where the sale is not over; 4 where an order is undecided; 5 where another server has taken over, and an
-- instance has not called it yet: what that one knows would be passed over; 6 where it is frozen.

local DAY = 86400000 -- ms; what is older no instance tells

local stock = load()
if not stock then
	return false
end
if redis.call('HEXISTS', S, 'archived') == 1 and stock.total == 0 and stock.state == 'ended' and
	redis.call('EXISTS', R) == 0 then
	return whole(stock, 1)
end
-- waits reports whether an instance that may tell something has not called this server yet.
local function waits()
	local all, past = redis.call('HGETALL', S), clock() - DAY
	for i = 1, #all, 2 do
		local _, _, run = stamp(string.sub(all[i], 1, 2) == 'm:' and all[i + 1] or '')
		if run and run ~= RUN and lately(all[i + 1], stock.jump) > past then return true end
	end
	return false
end

if stock.epoch ~= tonumber(ARGV[2]) or stock.ver ~= tonumber(ARGV[3]) then
	return whole(stock, 2)
end
if stock.state == 'frozen' then
	return whole(stock, 6)
end
local closed = (stock.state == 'on' or stock.state == 'paused') and stock.closes > 0 and clock() >= stock.closes
if stock.state ~= 'ended' and not closed then
	return whole(stock, 3)
end
if stock.held > 0 then
	return whole(stock, 4)
end
if RUN ~= '' and stock.run ~= '' and stock.run ~= RUN and waits() then
	return whole(stock, 5)
end
stock.epoch, stock.state, stock.total, stock.sold = stock.epoch + 1, 'ended', 0, 0
note(stock, 'archived', digits(stock.epoch))
local overruled = match(redis.call('HGET', S, 'over') or '', '^%d+')
if overruled then note(stock, 'over', overruled .. '|') end -- what ends later opens no next sale
note(stock, 'paid', '0') -- an operator begins the next sale
stock.paid = false
begin_sale(stock, stock.epoch)
local c = change()
push(c.fields, 'born', digits(stock.epoch))
commit(stock, 'archive', c)
redis.call('UNLINK', R, U, X, unpack(KEYS, 6, 8))
return whole(stock, 1)
