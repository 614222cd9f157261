-- overrule puts the SKU into a state for a while, under a number, or ends that.
-- ARGV: events, number, state ('' = end)
-- Reply: false without a ledger, else all numbers, of which done is 1 when it is overruled under this number now, or
-- ended; then the state before.
--
-- over of S is number|state-before: the highest number that came here, and what the SKU is again after it; nothing
-- stands behind the bar when that has ended, or an operator has said otherwise (set_state.lua). So each number begins
-- once and ends once, in whichever order its calls arrive and however often. Who overrules what is overruled already
-- keeps the state before. A later number has taken the place of the one before it: its end is the end of both.

local stock = load()
if not stock then return false end
local last, before = string.match(redis.call('HGET', S, 'over') or '0|', '^(%d+)|(%a*)$')
local this, state = tonumber(ARGV[2]), ARGV[3]
last = tonumber(last)

local function answer(done)
	local reply = whole(stock, done)
	reply[#reply + 1] = before
	return reply
end

local function become(next)
	if next ~= stock.state then
		stock.state = next
		commit(stock, 'state', change())
	end
end

if this < last then return answer(state == '' and 1 or 0) end
if state ~= '' then
	if this == last then return answer(before ~= '' and 1 or 0) end
	if stock.state == 'frozen' or stock.state == 'verifying' then return answer(0) end
	if before == '' then before = stock.state end
	note(stock, 'over', digits(this) .. '|' .. before)
	become(state)
	return answer(1)
end
note(stock, 'over', digits(this) .. '|')
if before ~= '' then
	if stock.state ~= 'frozen' then
		become(before)
	elseif not stock.by_hand and (redis.call('HGET', S, 'was') or 'frozen') ~= 'frozen' then
		note(stock, 'was', before) -- once its instances have told all
	end
end
return answer(1)
