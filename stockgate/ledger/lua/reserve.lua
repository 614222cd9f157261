-- reserve takes units for n orders, one after another. A loser writes nothing but its mark.
-- ARGV: events, now, deadline, epoch (0 = any, in the first sale), n, n serials, n users, n quantities as records have
--   them; where some orders wait until they are delivered, then n requests as until|data, '' = this one does not wait:
--   queue.lua has the keys
-- Reply: false without a ledger, else the hint and n codes, of which a new hold's is its serial.

local REPLAY_HELD, REPLAY_SOLD = 2, 3
local SOLD_OUT, NOT_ON_SALE, USER_LIMIT, OTHER_ORDER, RELEASED, STALE_EPOCH, REFUNDED = 0, -1, -2, -3, -4, -5, -7

local deadline, epoch, n = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local stock = load()
if not stock then
	return false
end
if epoch ~= stock.epoch and (epoch ~= 0 or stock.sale ~= 0) then
	local reply = hint(stock)
	for i = 1, n do reply[HINT + i] = STALE_EPOCH end
	return reply
end

local now = number('ARGV', ARGV[2], 'now')
local on_sale = stock.state == 'on' and now >= stock.opens and (stock.closes == 0 or now < stock.closes)
local records = redis.call('HMGET', R, unpack(ARGV, 6, 5 + n))
local free, has = stock.total - stock.held - stock.sold, {}
if on_sale and free > 0 then
	has = redis.call('HMGET', U, unpack(ARGV, 6 + n, 5 + 2 * n))
end
local c = change(ARGV[2])

local function replay(serial, record, user, wanted)
	local state, units, who, _, had = decode(serial, record)
	if state == 'X' then return RELEASED end
	if state == 'R' then return REFUNDED end
	if who ~= user or had ~= wanted and match(had, '^%d+/%?') ~= match(wanted, '^%d+') .. '/?' then return OTHER_ORDER end
	if state == 'C' then return REPLAY_SOLD end
	return REPLAY_HELD
end

-- Calls of functions are most of what an order costs here: what each order needs is written out.
local fresh, units, fields, taken, due = c.fresh, c.units, c.fields, c.records, c.due
local after, place, f = '|' .. deadline .. '|', 0, #fields
local reply, ARGV = hint(stock), ARGV
local requests, waiting = 5 + 3 * n, {}
local queued = #ARGV > requests + 9

for i = 1, n do
	local serial, user, wanted = ARGV[5 + i], ARGV[5 + n + i], ARGV[5 + 2 * n + i]
	local quantity, record, code = numbers[wanted] or units_of('ARGV', wanted, serial), fresh[serial] or records[i], serial
	local had = units[user] or has[i] and number(U, has[i], 'units of ', user) or 0
	if record then
		code = replay(serial, record, user, wanted)
	elseif not on_sale then
		code = NOT_ON_SALE
	elseif quantity > free then
		code = SOLD_OUT
	elseif stock.limit > 0 and user ~= '' and had + quantity > stock.limit then
		code = USER_LIMIT
	else
		record = 'H|' .. wanted .. after .. user -- as encode has it
		free, stock.held = free - quantity, stock.held + quantity
		units[user], fresh[serial] = had + quantity, record
		due[place + 1], due[place + 2] = deadline, serial
		taken[place + 1], taken[place + 2] = serial, record
		fields[f + 1], fields[f + 2] = 'r:' .. serial, record
		place, f = place + 2, f + 2
		if queued and ARGV[requests + i] ~= '' then waiting[#waiting + 1] = i end
	end
	reply[HINT + i] = code
end

-- queue has the orders of this call wait that have a request, under the next numbers.
local function queue()
	local W, O = KEYS[6], KEYS[7]
	local last = number(S, redis.call('HGET', S, 'numbered') or '0', 'numbered')
	local data, places, epoch = {}, {}, '|' .. digits(stock.epoch) .. '|'
	for k, i in ipairs(waiting) do
		local serial, at = ARGV[5 + i], digits(last + k)
		data[2 * k - 1], data[2 * k] = serial, at .. epoch .. ARGV[requests + i]
		places[2 * k - 1], places[2 * k] = at, serial
	end
	redis.call('HSET', O, unpack(data))
	redis.call('ZADD', W, unpack(places))
	redis.call('HSET', S, 'numbered', digits(last + #waiting))
end

if place > 0 then
	commit(stock, 'reserve', c)
	if #waiting > 0 then queue() end
end
return hint(stock, reply)
