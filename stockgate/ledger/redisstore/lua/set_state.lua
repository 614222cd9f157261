-- set_state opens, pauses, ends or freezes. Freezing raises the epoch each time it is asked for. Who opens what is
-- frozen or verifying vouches for what the ledger holds, and for the server that holds it; who resumes or begins anew
-- does not, and nobody vouches for what this very call finds lost. Later epochs that somebody has seen
-- elsewhere count no more then; a later sale does. What an operator says ends what overruled the state (overrule.lua),
-- but freezing does not.
-- ARGV: events, state
-- Reply: false without a ledger, else all numbers.

local state = ARGV[2]
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
local over = redis.call('HGET', S, 'over')
if over then note(stock, 'over', string.match(over, '^%d+') .. '|') end
if state == 'on' and (stock.state == 'frozen' or stock.state == 'verifying') then
	trust(stock)
end
if state ~= stock.state then
	stock.state = state
	outrun(stock)
	stock.epoch = math.max(stock.epoch, tonumber(stock.later) + (stock.later ~= '0' and 1 or 0))
	if stock.later ~= '0' then note(stock, 'later', '0') end
	local c = change()
	if stock.why ~= '' then
		stock.why = ''
		note(stock, 'why', '')
		push(c.fields, 'why', '')
	end
	commit(stock, 'state', c)
end
return whole(stock, 1)
