-- finish decides n reservations, one after another.
-- ARGV: events, now, keep, op, n, n serials, n users, n quantities (the last two count for adopt alone)
-- Reply: false without a ledger, else the hint and n answers.

local CHANGED, ALREADY, OVER_TOTAL = 1, 2, 4
local WAS_RELEASED, WAS_SOLD, NOT_FOUND, WAS_REFUNDED = -4, -7, -8, -11

-- What an op makes of a record in each state: its next state, or the answer when nothing changes. X and R are
-- final, unless an operator says, by the shop's books, that the order exists.
local turns = {
	confirm = {none = NOT_FOUND, H = 'C', C = ALREADY, X = WAS_RELEASED, R = WAS_REFUNDED},
	release = {none = 'X', H = 'X', C = WAS_SOLD, X = ALREADY, R = ALREADY},
	refund = {none = NOT_FOUND, H = 'R', C = 'R', X = WAS_RELEASED, R = ALREADY},
	adopt = {none = 'C', H = 'C', C = ALREADY, X = 'C', R = 'C'},
}

local keep, op, n = ARGV[3], ARGV[4], tonumber(ARGV[5])
local stock = load()
if not stock then
	return false
end
local records = redis.call('HMGET', R, unpack(ARGV, 6, 5 + n))
local c = change(ARGV[2])
local fresh, units, undue, taken, fields, turn = c.fresh, c.units, c.undue, c.records, c.fields, turns[op]
local settled, place, f = 0, 0, #fields
local reply, ARGV = hint(stock), ARGV
-- The version of a word from outside that recover.lua must compare; in an open stock a release or a refund needs none.
local version = (op == 'adopt' or op ~= 'confirm' and stock.state == 'frozen') and
	digits(stock.epoch) .. '-' .. digits(stock.ver + 1)

-- has reads the units of a user, as they are after the items before.
local function has(user)
	return units[user] or number(U, redis.call('HGET', U, user) or '0', 'units of ', user)
end

-- As in reserve.lua, what each order needs is written out.
for i = 1, n do
	local serial = ARGV[5 + i]
	local record, from, quantity, user, _, text = fresh[serial] or records[i], 'none', 0, '', '', '0'
	if record then from, quantity, user, _, text = decode(serial, record) end
	local to, time, answer = turn[from], keep, CHANGED
	if op == 'adopt' and from ~= 'H' then
		user, quantity = ARGV[5 + n + i], units_of('ARGV', ARGV[5 + 2 * n + i], serial)
	end
	if version then text = dated(quantity, version) end
	if to == 'C' then
		if from == 'H' then stock.held = stock.held - quantity else units[user] = has(user) + quantity end
		stock.sold = stock.sold + quantity
		time, settled = '0', settled + 1
		undue[settled] = serial
	elseif to == 'X' or to == 'R' then
		if from == 'H' then stock.held = stock.held - quantity end
		if from == 'C' then stock.sold = stock.sold - quantity end
		if from ~= 'none' then units[user] = has(user) - quantity end
		push(c.due, keep, serial)
	else
		answer = to -- in a statement of its own: the embedded Redis would exchange nothing
		to = nil
	end
	if to then
		record = to .. '|' .. text .. '|' .. time .. '|' .. user -- as encode has it
		fresh[serial], taken[place + 1], taken[place + 2] = record, serial, record
		fields[f + 1], fields[f + 2] = 'r:' .. serial, record
		place, f = place + 2, f + 2
	end
	if op == 'adopt' and to == 'C' and stock.held + stock.sold > stock.total then answer = OVER_TOTAL end
	reply[HINT + i] = answer
end

if place > 0 then
	commit(stock, op, c)
end
return hint(stock, reply)
