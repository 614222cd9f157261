-- set_state opens, pauses, ends or freezes. Freezing raises the epoch each time it is asked for. Who puts what is
-- frozen into another state, or opens what is verifying, vouches for what the ledger holds, and for the server that
-- holds it; who resumes or begins anew does not, and nobody vouches for what this very call finds lost. Later epochs
-- that somebody has seen elsewhere count no more then; a later sale does. What an operator says ends what overruled the
-- state (overrule.lua), but freezing does not. That a SKU has ended since every unit is paid stands until a state is
-- said again, or the sale is archived: it outlasts a time in which the SKU is frozen or overruled.
-- ARGV: events, state, "paid" where the settlers say so: they end what is paid, and open again what they have ended
--   once units are free
-- Reply: false without a ledger, else all numbers; done is 1 where it is in that state now.

local state, paid = ARGV[2], ARGV[3] == 'paid'
local stock = load()
if not stock then
	return false
end
if state == 'frozen' then
	freeze(stock, 'operator')
	stock.froze = false
	return whole(stock, 1)
end
if stock.froze then
	return whole(stock, 1)
end
if paid and state == 'on' and (stock.state ~= 'ended' or not stock.paid) then
	return whole(stock, 0)
end
-- It may have been paused or frozen since the settlers read that it is on sale.
if paid and state == 'ended' and (stock.state ~= 'on' and stock.state ~= 'ended' or stock.sold < stock.total) then
	return whole(stock, 0)
end
local over = redis.call('HGET', S, 'over')
-- An operator has the SKU in a state for a while: settlers open or end it afterwards.
if paid and over and not string.match(over, '|$') then
	return whole(stock, 0)
end
if over then note(stock, 'over', string.match(over, '^%d+') .. '|') end
if stock.state == 'frozen' or state == 'on' and stock.state == 'verifying' then trust(stock) end
if state ~= stock.state or stock.paid and not paid then
	local c, before, ends = change(), reason(stock), paid and state == 'ended'
	stock.state = state == 'on' and unverified(stock) and 'verifying' or state
	outrun(stock)
	stock.epoch = math.max(stock.epoch, tonumber(stock.later) + (stock.later ~= '0' and 1 or 0))
	if stock.later ~= '0' then note(stock, 'later', '0') end
	if stock.paid ~= ends then note(stock, 'paid', ends and '1' or '0') end
	if stock.why ~= '' then note(stock, 'why', '') end
	stock.paid, stock.why = ends, ''
	if reason(stock) ~= before then push(c.fields, 'why', reason(stock)) end
	commit(stock, 'state', c)
end
return whole(stock, 1)
