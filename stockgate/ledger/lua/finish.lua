-- finish decides n reservations, one after another.
-- ARGV: events, now, keep, op, n, n serials, n users, n quantities (the last two count for adopt alone)
-- Reply: false without a ledger, else the hint and n answers.

local CHANGED, ALREADY, OVER_TOTAL = 1, 2, 4
local WAS_RELEASED, WAS_SOLD, NOT_FOUND = -4, -7, -8

-- What an op makes of a record in each state: its next state, or the answer when nothing changes. X and R are
-- final for everybody but the shop's own word that the order exists.
local turns = {
	confirm = {none = NOT_FOUND, H = 'C', C = ALREADY, X = WAS_RELEASED, R = WAS_RELEASED},
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

-- has reads the units of a user, as they are after the items before.
local function has(user)
	return c.units[user] or number(U, 'units of ' .. user, redis.call('HGET', U, user) or '0')
end

local function take(from, quantity)
	if from == 'H' then stock.held = stock.held - quantity end
	if from == 'C' then stock.sold = stock.sold - quantity end
end

local function move(serial, from, to, quantity, user)
	take(from, quantity)
	if to == 'C' then
		stock.sold = stock.sold + quantity
		put(c, serial, encode(to, digits(quantity), '0', user))
		c.undue[#c.undue + 1] = serial
		if from ~= 'H' then c.units[user] = has(user) + quantity end
		return
	end
	put(c, serial, encode(to, digits(quantity), keep, user))
	push(c.due, keep, serial)
	if from == 'H' or from == 'C' then c.units[user] = has(user) - quantity end
end

local function finish(i)
	local serial = ARGV[5 + i]
	local record = c.fresh[serial] or records[i]
	local from, quantity, user = 'none', 0, ''
	if record then from, quantity, user = decode(serial, record) end
	local to = turns[op][from]
	if type(to) == 'number' then return to end
	if op == 'adopt' and from ~= 'H' then
		user, quantity = ARGV[5 + n + i], tonumber(ARGV[5 + 2 * n + i])
	end
	move(serial, from, to, quantity, user)
	if op == 'adopt' and stock.held + stock.sold > stock.total then return OVER_TOTAL end
	return CHANGED
end

local answers = {}
for i = 1, n do answers[i] = finish(i) end
if #c.records > 0 then
	commit(stock, op, c)
end
local reply = hint(stock)
for i = 1, n do reply[HINT + i] = answers[i] end
return reply
