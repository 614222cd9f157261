-- What every script of the ledger begins with: the stock of one SKU, read whole or not at all.
--
-- Lua undoes nothing: everything is read and checked before the first write, and the first write is the stream's,
-- which Redis refuses when the change does not follow the one before. Numbers are integers of at most 15 digits,
-- exact in a double, and never printed by Lua itself, which would round them to 14.

local S, R, U, X, Q = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local function fault(key, what)
	error(key .. ': ' .. what, 0)
end

-- number reads what a key holds. Nothing is not 0.
local function number(key, name, text)
	if not text or #text > 15 or not string.find(text, '^%d+$') then
		fault(key, name .. ' is not a number')
	end
	return tonumber(text)
end

-- digits is n as the keys hold it. No number of a ledger is ever negative.
local function digits(n)
	if n < 0 or n > 999999999999999 then
		fault(S, string.format('a number would become %.0f', n))
	end
	return string.format('%d', n)
end

-- load reads the numbers; nil when there is no ledger. Numbers without the records that they count are a fault.
local function load()
	local v = redis.call('HMGET', S, 'total', 'held', 'sold', 'state', 'epoch', 'limit', 'ver')
	if not v[1] and redis.call('EXISTS', S) == 0 then
		return nil
	end
	local stock = {
		total = number(S, 'total', v[1]), held = number(S, 'held', v[2]), sold = number(S, 'sold', v[3]),
		state = v[4], epoch = number(S, 'epoch', v[5]), limit = number(S, 'limit', v[6]), ver = number(S, 'ver', v[7]),
	}
	if v[4] ~= 'on' and v[4] ~= 'paused' and v[4] ~= 'ended' and v[4] ~= 'frozen' then
		fault(S, 'state is none of on, paused, ended, frozen')
	end
	local due = redis.call('ZCARD', X)
	if stock.held > 0 and due == 0 or stock.held + stock.sold > 0 and redis.call('EXISTS', R, U) < 2 then
		fault(S, 'it counts reservations whose keys are gone')
	end
	return stock
end

-- hint is how every reply begins.
local function hint(stock)
	return {stock.total - stock.held - stock.sold, stock.epoch, stock.ver, stock.state}
end

-- whole is a reply with all numbers.
local function whole(stock, done)
	local reply = hint(stock)
	for _, n in ipairs({stock.total, stock.held, stock.sold, stock.limit, done}) do
		reply[#reply + 1] = n
	end
	return reply
end

-- A record is state|quantity|time|user. The user comes last and may hold any byte.
local function encode(state, quantity, time, user)
	return state .. '|' .. digits(quantity) .. '|' .. time .. '|' .. user
end

local function decode(serial, record)
	local state, quantity, time, user = string.match(record, '^([HCXR])|(%d+)|(%d+)|(.*)$')
	if not state then
		fault(R, 'the record of ' .. serial .. ' cannot be read')
	end
	return state, number(R, 'the quantity of ' .. serial, quantity), user, time
end

-- change collects what one call writes; now may be missing.
local function change(now)
	return {
		fields = now and {'at', now} or {}, -- of the stream's entry, after the numbers
		records = {}, -- serial, record, ...
		fresh = {},   -- the same by serial, for later items of the call
		units = {},   -- by user: how many it has then
		due = {},     -- time, serial, ...
		undue = {},   -- serials
	}
end

local function put(c, serial, record)
	c.records[#c.records + 1] = serial
	c.records[#c.records + 1] = record
	c.fields[#c.fields + 1] = 'r:' .. serial
	c.fields[#c.fields + 1] = record
	c.fresh[serial] = record
end

-- commit writes c and the numbers as the next version: one command a key.
local function commit(stock, op, c)
	stock.ver = stock.ver + 1
	local numbers = {
		'total', digits(stock.total), 'held', digits(stock.held), 'sold', digits(stock.sold),
		'state', stock.state, 'limit', digits(stock.limit),
	}
	local entry = {'op', op, unpack(numbers)}
	for i = 1, #c.fields do
		entry[#entry + 1] = c.fields[i]
	end
	local users, gone = {}, {}
	for user, n in pairs(c.units) do
		if n == 0 then
			gone[#gone + 1] = user
		else
			users[#users + 1] = user
			users[#users + 1] = digits(n)
		end
	end
	redis.call('XADD', Q, 'MAXLEN', '~', ARGV[1], digits(stock.epoch) .. '-' .. digits(stock.ver), unpack(entry))
	redis.call('HSET', S, 'epoch', digits(stock.epoch), 'ver', digits(stock.ver), unpack(numbers))
	if #c.records > 0 then redis.call('HSET', R, unpack(c.records)) end
	if #c.due > 0 then redis.call('ZADD', X, unpack(c.due)) end
	if #c.undue > 0 then redis.call('ZREM', X, unpack(c.undue)) end
	if #users > 0 then redis.call('HSET', U, unpack(users)) end
	if #gone > 0 then redis.call('HDEL', U, unpack(gone)) end
end
