-- reserve takes units for n orders, one after another. A loser writes nothing but its mark.
-- ARGV: events, now, deadline, epoch (0 = any), n, n serials, n users, n quantities
-- Reply: false without a ledger, else the hint and n codes, of which a new hold's is its serial.

local REPLAY_HELD, REPLAY_SOLD = 2, 3
local SOLD_OUT, NOT_ON_SALE, USER_LIMIT, OTHER_ORDER, RELEASED, STALE_EPOCH = 0, -1, -2, -3, -4, -5

local deadline, epoch, n = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local stock = load()
if not stock then
	return false
end
if epoch ~= 0 and epoch ~= stock.epoch then
	local reply = hint(stock)
	for i = 1, n do reply[HINT + i] = STALE_EPOCH end
	return reply
end

local now = number('ARGV', 'now', ARGV[2])
local on_sale = stock.state == 'on' and now >= stock.opens and (stock.closes == 0 or now < stock.closes)
local records = redis.call('HMGET', R, unpack(ARGV, 6, 5 + n))
local free, has = stock.total - stock.held - stock.sold, {}
if on_sale and free > 0 then
	has = redis.call('HMGET', U, unpack(ARGV, 6 + n, 5 + 2 * n))
end
local c = change(ARGV[2])

local function replay(serial, record, user, quantity)
	local state, q, who = decode(serial, record)
	if state == 'X' or state == 'R' then return RELEASED end
	if who ~= user or q ~= quantity then return OTHER_ORDER end
	if state == 'C' then return REPLAY_SOLD end
	return REPLAY_HELD
end

local function reserve(i)
	local serial, user, wanted = ARGV[5 + i], ARGV[5 + n + i], ARGV[5 + 2 * n + i]
	local quantity = tonumber(wanted)
	local record = c.fresh[serial] or records[i]
	if record then return replay(serial, record, user, quantity) end
	if not on_sale then return NOT_ON_SALE end
	if quantity > free then return SOLD_OUT end
	local units = c.units[user] or has[i] and number(U, 'units of ' .. user, has[i]) or 0
	if stock.limit > 0 and user ~= '' and units + quantity > stock.limit then return USER_LIMIT end
	free = free - quantity
	stock.held = stock.held + quantity
	c.units[user] = units + quantity
	push(c.due, deadline, serial)
	put(c, serial, encode('H', wanted, deadline, user))
	return serial
end

local codes = {}
for i = 1, n do codes[i] = reserve(i) end
if #c.records > 0 then
	commit(stock, 'reserve', c)
end
local reply = hint(stock)
for i = 1, n do reply[HINT + i] = codes[i] end
return reply
