-- What every script of the ledger begins with: the stock of one SKU, read whole or not at all.
--
-- Lua undoes nothing: everything is read and checked before the first write, and the first write is the stream's,
-- which Redis refuses when the change does not follow the one before. Numbers are integers of at most 15 digits,
-- exact in a double, and never printed by Lua itself, which would round them to 14.

-- The keys, all of them sluice:name:{sku}:... in one slot; none of them ever expires:
--   S  hash    total held sold state epoch limit ver opens closes,
--              and added, which add.lua explains; born, the epoch of a new ledger; archived, the epoch since which
--              archive.lua has no order of before; sale, which sale of the SKU this is: the epoch in which it began,
--              none in the first one. Instances derive serials from it, so what is reserved in an epoch is of one sale;
--              over, which overrule.lua explains; paid = 1 while it is the settlers' word that it has ended, see
--              set_state.lua; numbered and taken, see queue.lua; home and first, which settle/home.go alone writes;
--              why run doubt was since upto later jump, a mark m:<instance> for each, and rc:<instance>, see mark.lua
--   R  hash    serial -> record
--   U  hash    user -> units held + sold, "" for all whom nobody knows; a user without units has no field
--   X  zset    serial by Unix ms: a hold when the resolver looks at it, a tombstone when sweep.lua does
--   Q  stream  each change under the id epoch-ver. An entry is the stock after it (op total held sold state limit opens
--              closes, at when the caller said) and each record that changed, as r:serial -> record. ver has no holes.
-- Notifications go to a channel, which the last argument of every call names: what hint() says with | between, then the
-- SKU.
local S, R, U, X, Q = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local NEWS = ARGV[#ARGV]

local function fault(key, what)
	local remedy = '; the ledger is broken, and nothing is sold: sluice stock recover ' .. string.match(S, '{(.*)}') ..
		' --total N --from FILE|settle|none --apply'
	error(key .. ': ' .. what .. (key == 'ARGV' and '' or remedy), 0)
end

-- What was read or printed before in this call, by text and by number: most orders are of one unit, and most numbers of
-- a stock stay as they were read.
local numbers, texts = {}, {}

-- number reads what a key holds. Nothing is not 0. The parts of its name are put together for a fault alone.
local function number(key, text, name, of)
	local n = numbers[text]
	if n then return n end
	if not text or #text > 15 or not string.find(text, '^%d+$') then
		fault(key, name .. (of or '') .. ' is not a number')
	end
	n = tonumber(text)
	numbers[text] = n
	if text == '0' or string.byte(text) ~= 48 then texts[n] = text end -- what 007 or 00 would become is printed
	return n
end

-- digits is n as the keys hold it. No number of a ledger is ever negative.
local function digits(n)
	local text = texts[n]
	if text then return text end
	if n < 0 or n > 999999999999999 then
		fault(S, string.format('a number would become %.0f', n))
	end
	text = string.format('%d', n)
	texts[n] = text
	return text
end

-- hint is how every reply begins: HINT values. It is put into a reply that there is already.
local HINT = 8
local function hint(stock, reply)
	reply = reply or {}
	reply[1], reply[2], reply[3] = stock.total - stock.held - stock.sold, stock.epoch, stock.ver
	reply[4], reply[5], reply[6], reply[7], reply[8] = stock.state, stock.opens, stock.closes, stock.held, stock.sale
	return reply
end

-- untold counts the instances that have not told a frozen stock all that they know, see mark.lua.
local function untold(stock)
	local n = 0
	if stock.state ~= 'frozen' then return n end
	local all = redis.call('HGETALL', S)
	for i = 1, #all, 2 do
		if string.sub(all[i], 1, 3) == 'rc:' and tonumber(string.sub(all[i + 1], 1, 1)) < 2 then n = n + 1 end
	end
	return n
end

-- reason is why a stock is frozen, or that it has ended since every unit is paid.
local function reason(stock) return stock.state == 'ended' and stock.paid and 'paid' or stock.why end

-- whole is a reply with all numbers.
local function whole(stock, done)
	local reply = hint(stock)
	for _, n in ipairs({stock.total, stock.held, stock.sold, stock.limit, done, untold(stock), reason(stock)}) do
		reply[#reply + 1] = n
	end
	return reply
end

-- A record is state|quantity|time|user, all of them strings. The user comes last and may hold any byte. H is held until
-- the time, C sold (time 0), X released and R refunded: tombstones, kept until the time. The quantity of a line of
-- a cart is units/cart; ? is the cart of an order that was told without its other lines. ?epoch-ver says since which
-- version the record is so by a word from outside: an order that was adopted, or one that was given back while the
-- stock was frozen. recover.lua compares them.
local function encode(state, quantity, time, user)
	return state .. '|' .. quantity .. '|' .. time .. '|' .. user
end

local match = string.match

-- units_of are the units of a quantity.
local function units_of(key, quantity, serial)
	return numbers[quantity] or number(key, match(quantity, '^(%d+)/[^|/]+$') or quantity, 'the quantity of ', serial)
end

-- dated is a quantity since a version.
local function dated(quantity, version) return digits(quantity) .. '/?' .. version end

-- decode returns a record's quantity as a number, and last as it is written.
local function decode(serial, record)
	local state, quantity, time, user = match(record, '^([HCXR])|([^|]+)|(%d+)|(.*)$')
	if not state then
		fault(R, 'the record of ' .. serial .. ' cannot be read')
	end
	return state, units_of(R, quantity, serial), user, time, quantity
end

-- change collects what one call writes; now may be missing.
local function change(now)
	return {
		orders = now, -- orders change held, sold and the version, and nothing else of the stock
		fields = now and {'at', now} or {}, -- of the stream's entry, after the numbers
		records = {}, -- serial, record, ...
		fresh = {},   -- the same by serial, for later items of the call
		units = {},   -- by user: how many it has then
		due = {},     -- time, serial, ...
		undue = {},   -- serials
	}
end

-- push adds a pair to a list.
local function push(list, a, b)
	local n = #list
	list[n + 1], list[n + 2] = a, b
end

local function put(c, serial, record)
	local records, fields = c.records, c.fields
	local n, m = #records, #fields
	records[n + 1], records[n + 2] = serial, record
	fields[m + 1], fields[m + 2] = 'r:' .. serial, record
	c.fresh[serial] = record
end

-- tell publishes a change after which somebody who was refused may buy, or nobody may: units that came back while few
-- were free, other hours, and another state. Nothing hangs on it: where Redis refuses to publish, the change stands. In
-- a cluster a classic PUBLISH, unlike a sharded one, reaches the subscribers of every node.
local SCARCE = 256
local function tell(stock, op)
	local free, state = stock.total - stock.held - stock.sold, stock.state == 'verifying' and 'on' or stock.state
	local was = stock.was_free
	if op ~= 'hours' and state == stock.was_state and was and (free <= was or was >= SCARCE) then return end
	local words = hint(stock)
	for i, word in ipairs(words) do
		if type(word) == 'number' then words[i] = string.format('%.0f', word) end
	end
	words[#words + 1] = string.match(S, '{(.*)}')
	redis.pcall('PUBLISH', NEWS, table.concat(words, '|'))
end

-- commit writes c and the numbers as the next version: one command a key.
local function commit(stock, op, c)
	stock.ver = stock.ver + 1
	local total, held, sold, limit = digits(stock.total), digits(stock.held), digits(stock.sold), digits(stock.limit)
	local epoch, ver = digits(stock.epoch), digits(stock.ver)
	local opens, closes = digits(stock.opens), digits(stock.closes)
	local state = stock.state == 'verifying' and 'on' or stock.state
	local users, gone, place = {}, {}, 0
	for user, n in pairs(c.units) do
		if n == 0 then
			gone[#gone + 1] = user
		else
			users[place + 1], users[place + 2] = user, texts[n] or digits(n)
			place = place + 2
		end
	end
	redis.call('XADD', Q, 'MAXLEN', '~', ARGV[1], epoch .. '-' .. ver, 'op', op, 'total', total, 'held', held,
		'sold', sold, 'state', state, 'limit', limit, 'opens', opens, 'closes', closes, unpack(c.fields))
	if c.orders then
		redis.call('HSET', S, 'held', held, 'sold', sold, 'ver', ver, unpack(stock.marks))
	else
		redis.call('HSET', S, 'total', total, 'held', held, 'sold', sold, 'state', state, 'epoch', epoch,
			'limit', limit, 'ver', ver, 'opens', opens, 'closes', closes, unpack(stock.marks))
	end
	stock.marks = {}
	if #c.records > 0 then redis.call('HSET', R, unpack(c.records)) end
	if #c.due > 0 then redis.call('ZADD', X, unpack(c.due)) end
	if #c.undue > 0 then redis.call('ZREM', X, unpack(c.undue)) end
	if #users > 0 then redis.call('HSET', U, unpack(users)) end
	if #gone > 0 then redis.call('HDEL', U, unpack(gone)) end
	tell(stock, op)
end
