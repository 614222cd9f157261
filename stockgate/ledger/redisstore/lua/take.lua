-- take hands out orders that wait, and orders that an instance must ask about. The oldest goes first; orders that were
-- put off and are due take every second place.
-- ARGV: events, now, how many orders, how many may be handed out at once, timeout of a first attempt, grace, how many are
--   asked about, for how long no other instance asks (all times in ms), then the longest attempt with its grace
-- Reply: false without a ledger, else the hint; how many wait, are handed out, are asked about, and were handed out ever;
-- until when the oldest that still waits may begin (0 = none waits);
-- then a list each of orders, of those to ask about, and of those whose time is over: serial, record, attempt, deadline,
-- until, lease, whether an attempt may have made it (1), request, ...

local now, want, limit = number('ARGV', ARGV[2], 'now'), tonumber(ARGV[3]), tonumber(ARGV[4])
local timeout, grace, most = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local ask_for, longest = tonumber(ARGV[8]), tonumber(ARGV[9])
local LEASED = 8 -- values of an order in a list
local LOOK = 16 -- orders that are looked at beyond those that are wanted

local stock = load()
if not stock then
	return false
end
local orders, asks, expired, gone = {}, {}, {}, {}
local taken, oldest = number(S, redis.call('HGET', S, 'taken') or '0', 'taken'), 0

local function add(list, e, request)
	for _, v in ipairs({e.serial, e.record, e.attempt, e.deadline, e.till, e.lease, e.open and 1 or 0, request or ''}) do
		list[#list + 1] = v
	end
end

-- read finds the entries of serials, without those that are decided.
local function read(serials)
	local list = {}
	if #serials == 0 then return list end
	local records, texts_of = redis.call('HMGET', R, unpack(serials)), redis.call('HMGET', A, unpack(serials))
	for i, serial in ipairs(serials) do
		local e, state, q, user, time = entry(serial, texts_of[i] or ''), nil, nil, nil, nil
		if records[i] then state, q, user, time = decode(serial, records[i]) end
		if state == 'H' and e then
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

-- lease begins an attempt. It ends before the reservation does.
local function lease(e)
	local last = math.min(now + timeout * math.min(2 ^ math.min(e.attempt, 8), 4), e.reserved)
	e.attempt, e.lease, e.deadline = e.attempt + 1, e.lease + 1, digits(last)
	keep_entry(e, stock)
	redis.call('ZREM', W, e.serial)
	redis.call('ZADD', L, digits(last + grace), e.serial)
	add(orders, e, redis.call('HGET', O, e.serial))
end

-- ready finds those orders between two places that may be handed out now.
local function ready(from, to, most)
	local list = {}
	for _, e in ipairs(read(redis.call('ZRANGEBYSCORE', W, from, to, 'LIMIT', 0, most))) do
		local over = e.till <= now or e.reserved <= now
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
	local first, i = ready('-inf', '(' .. digits(LATER), room + LOOK), 1
	local late, j = ready(digits(LATER), digits(LATER + now), room + LOOK), 1
	for k = 1, room do
		if late[j] and ((taken + k) % 2 == 0 or not first[i]) then
			lease(late[j])
			j = j + 1
		elseif first[i] then
			lease(first[i])
			i = i + 1
		end
	end
	for _, e in ipairs({first[i] or late[j], late[j]}) do
		if oldest == 0 or e.till < oldest then oldest = e.till end
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

if not closed(stock) then
	take_waiting()
	take_unknown(L)
	take_unknown(K)
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
