-- hand_out hands out orders that wait, and orders that an instance must ask about. The oldest goes first; orders that were
-- put off and are due take every second place.
-- ARGV: events, now, how many orders, how many may be handed out at once, timeout of a first attempt, grace, how many are
--   asked about, for how long no other instance asks (all times in ms), then the longest attempt with its grace
-- Reply: false without a ledger, else the hint; how many wait, are handed out, are asked about, and were handed out ever;
-- until when the oldest that still waits may begin (0 = none waits);
-- then a list each of orders, of those to ask about, and of those whose time is over: serial, record, what A says of it,
-- request, ...

local now, want, limit = number('ARGV', ARGV[2], 'now'), tonumber(ARGV[3]), tonumber(ARGV[4])
local timeout, grace, most = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local ask_for, longest = tonumber(ARGV[8]), tonumber(ARGV[9])
local LEASED = 4 -- values of an order in a list
local LOOK = 16 -- orders that are looked at, at least: those whose time is over may be among them

local stock = load()
if not stock then
	return false
end
local orders, asks, expired, gone = {}, {}, {}, {}
local taken, oldest = number(S, redis.call('HGET', S, 'taken') or '0', 'taken'), 0

local function add(list, e, request)
	local k = #list
	list[k + 1], list[k + 2], list[k + 3], list[k + 4] = e.serial, e.record, e.text, request or ''
end

-- read finds the entries of serials, without those that are decided.
local function read(serials)
	local list = {}
	if #serials == 0 then return list end
	local records, texts_of = redis.call('HMGET', R, unpack(serials)), redis.call('HMGET', A, unpack(serials))
	for i, serial in ipairs(serials) do
		local e, time = entry(serial, texts_of[i] or ''), match(records[i] or '', '^H|[^|]+|(%d+)|')
		if e and time then
			e.record, e.reserved = records[i], tonumber(time)
			list[#list + 1] = e
		else
			gone[#gone + 1] = serial
		end
	end
	return list
end

-- suspect has an order asked about once every attempt has ended that the ledger may have lost. It has a
-- lease number that no lost attempt has: what is said of those changes nothing any more.
local function suspect(e)
	e.lease = e.lease + 1000
	keep_entry(e, stock)
	redis.call('ZREM', W, e.serial)
	redis.call('ZREM', L, e.serial)
	redis.call('ZADD', K, digits(now + longest), e.serial)
end

-- lease begins attempts. Each ends before the reservation does.
local function lease(list)
	local serials, fields, ends = {}, {}, {}
	for i, e in ipairs(list) do
		local last = math.min(now + timeout * math.min(2 ^ math.min(e.attempt, 8), 4), e.reserved)
		e.attempt, e.lease, e.deadline = e.attempt + 1, e.lease + 1, digits(last)
		serials[i] = e.serial
		push(fields, e.serial, entry_text(e, stock))
		push(ends, digits(last + grace), e.serial)
	end
	if #list == 0 then return end
	redis.call('HSET', A, unpack(fields))
	redis.call('ZREM', W, unpack(serials))
	redis.call('ZADD', L, unpack(ends))
	local requests = redis.call('HMGET', O, unpack(serials))
	for i, e in ipairs(list) do add(orders, e, requests[i]) end
end

-- ready finds those orders between two places that may be handed out now.
local function ready(from, to, most)
	local list = {}
	for _, e in ipairs(read(redis.call('ZRANGEBYSCORE', W, from, to, 'LIMIT', 0, most))) do
		local over = tonumber(e.till) <= now or e.reserved <= now
		if e.epoch ~= stock.epoch then
			suspect(e)
		elseif over and e.open then
			redis.call('ZREM', W, e.serial)
			redis.call('ZADD', K, digits(now), e.serial)
		elseif over then
			add(expired, e)
		else
			list[#list + 1] = e
		end
	end
	return list
end

local function take_waiting()
	local room = math.max(math.min(want, limit - redis.call('ZCARD', L)), 0)
	local most, chosen = math.max(room + 1, LOOK), {}
	local first, i = ready('-inf', '(' .. digits(LATER), most), 1
	local late, j = ready(digits(LATER), digits(LATER + now), most), 1
	for k = 1, room do
		if late[j] and ((taken + k) % 2 == 0 or not first[i]) then
			chosen[k] = late[j]
			j = j + 1
		elseif first[i] then
			chosen[k] = first[i]
			i = i + 1
		end
	end
	lease(chosen)
	for _, e in ipairs({first[i] or late[j], late[j]}) do
		local till = tonumber(e.till)
		if oldest == 0 or till < oldest then oldest = till end
	end
end

local function take_unknown(key)
	if #asks >= LEASED * most then return end
	for _, e in ipairs(read(redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, most - #asks / LEASED))) do
		if e.epoch ~= stock.epoch then
			suspect(e)
		else
			redis.call('ZREM', L, e.serial)
			redis.call('ZADD', K, digits(now + ask_for), e.serial)
			add(asks, e)
		end
	end
end

-- forget_stuck looks at some of those that wait for a person, others at each time: what was decided meanwhile is met.
local function forget_stuck()
	local n = redis.call('ZCOUNT', K, NEVER, NEVER)
	if n > 0 then read(redis.call('ZRANGEBYSCORE', K, NEVER, NEVER, 'LIMIT', now % n, LOOK)) end
end

if not closed(stock) then
	take_waiting()
	take_unknown(L)
	take_unknown(K)
	forget_stuck()
	drop(gone)
end
taken = taken + #orders / LEASED
if #orders > 0 then note(stock, 'taken', digits(taken)) end
local reply = hint(stock)
for i, v in ipairs({redis.call('ZCARD', W), redis.call('ZCARD', L), redis.call('ZCARD', K), taken, oldest, orders, asks,
	expired}) do
	reply[HINT + i] = v
end
return reply
