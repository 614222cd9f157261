-- hand_out hands out orders that wait, and orders that an instance must ask about. The oldest goes first; orders that
-- were put off and are due take every second place.
-- ARGV: events, now, how many orders, how many may be handed out at once, timeout of a first attempt, grace, how many
--   are asked about, for how long no other instance asks (all times in ms), then the longest attempt with its grace
-- Reply: false without a ledger, else the hint; how many wait, are handed out, are asked about, and were handed out
-- ever; until when the oldest that still waits may begin (0 = none waits);
-- then a list each of orders, of those to ask about, and of those whose time is over: serial, record, what A would say
-- of it, or the deadline of its first attempt alone, what O says, ...

local now, want, limit = number('ARGV', ARGV[2], 'now'), tonumber(ARGV[3]), tonumber(ARGV[4])
local timeout, grace, most = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local ask_for, longest = tonumber(ARGV[8]), tonumber(ARGV[9])
local LISTED = 4 -- values of an order in a list
local LOOK = 16 -- orders that are looked at where none are to be handed out, or some of those that are cannot be

local stock = load()
if not stock then
	return false
end
local orders, asks, expired, gone = {}, {}, {}, {}
local taken, oldest = number(S, redis.call('HGET', S, 'taken') or '0', 'taken'), 0

local function add(list, e, text, request)
	local k = #list
	list[k + 1], list[k + 2], list[k + 3], list[k + 4] = e.serial, e.record, text, request
end

-- read finds the entries of serials, all of which wait or were handed out, without those that are decided.
local function read(serials, waiting)
	local list = {}
	if #serials == 0 then return list end
	local records, texts_of = redis.call('HMGET', R, unpack(serials)), redis.call('HMGET', A, unpack(serials))
	local fresh, f, requests = {}, 0, nil -- fresh ones have no text
	for i, serial in ipairs(serials) do
		if not texts_of[i] then
			f = f + 1
			fresh[f] = serial
		end
	end
	if f > 0 then requests, f = redis.call('HMGET', O, unpack(fresh)), 0 end
	for i, serial in ipairs(serials) do
		local text, request = texts_of[i], nil
		if not text then
			f = f + 1
			request = requests[f]
		end
		local e = entry(serial, text, request, waiting and 0 or request and at(serial))
		local time = match(records[i] or '', '^H|[^|]+|(%d+)|')
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
	redis.call('ZADD', W, after(ASKED, now + longest), e.serial)
end

-- lease begins attempts. Each ends before the reservation does. Nothing is written of a first one but its end. The
-- caller's mark tells later whether this call is lost; where a later call of its has come before, a version does.
local function lease(list)
	if #list == 0 then return end
	if stock.overtaken then commit(stock, 'hand_out', change()) end
	local ends, fields, again, k = {}, {}, {}, 0
	for _, e in ipairs(list) do
		if not e.request then again[#again + 1] = e.serial end
	end
	local requests = #again > 0 and redis.call('HMGET', O, unpack(again))
	for i, e in ipairs(list) do
		local last = now + (e.attempt == 0 and timeout or e.attempt == 1 and 2 * timeout or 4 * timeout)
		if last > e.reserved then last = e.reserved end
		local text, request = digits(last), e.request
		ends[2 * i - 1], ends[2 * i] = after(LEASED, last), e.serial
		if not request then
			k = k + 1
			request = requests[k] or ''
			e.attempt, e.lease, e.deadline = e.attempt + 1, e.lease + 1, text
			text = entry_text(e)
			push(fields, e.serial, text)
		end
		add(orders, e, text, request)
	end
	if k > 0 then redis.call('HSET', A, unpack(fields)) end
	redis.call('ZADD', W, unpack(ends))
end

-- ready finds those orders between two places that may be handed out now.
local function ready(from, to, most)
	local list, seen = {}, 0 -- seen = how many that were looked at are still there
	for _, page in ipairs({most, LOOK}) do
		local serials = redis.call('ZRANGEBYSCORE', W, from, to, 'LIMIT', seen, page)
		seen = seen + #serials
		for _, e in ipairs(read(serials, true)) do
			local over = e.reserved <= now or tonumber(e.till) <= now
			if e.epoch ~= stock.epoch then
				suspect(e)
				seen = seen - 1
			elseif over and e.open then
				redis.call('ZADD', W, after(ASKED, now), e.serial)
				seen = seen - 1
			elseif over then
				add(expired, e, entry_text(e), '')
			else
				list[#list + 1] = e
			end
		end
		if #list >= most or #serials < page then break end
	end
	return list
end

-- among counts the orders between two places.
local function among(place, behind) return redis.call('ZCOUNT', W, digits(place), '(' .. digits(behind)) end

local function take_waiting()
	local room = math.max(math.min(want, limit - among(LEASED, ASKED)), 0)
	local chosen, page = {}, want == 0 and LOOK or room + 1
	local first, i = ready('-inf', '(' .. digits(LATER), page), 1
	local late, j = ready(digits(LATER), digits(LATER + now), page), 1
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

-- take_unknown has orders asked about that are at a place until a time.
local function take_unknown(place, time)
	if #asks >= LISTED * most then return end
	for _, e in ipairs(read(redis.call('ZRANGEBYSCORE', W, digits(place), after(place, time), 'LIMIT', 0,
		most - #asks / LISTED))) do
		if e.epoch ~= stock.epoch then
			suspect(e)
		else
			if e.request then keep_entry(e, stock) end
			redis.call('ZADD', W, after(ASKED, now + ask_for), e.serial)
			add(asks, e, entry_text(e), '')
		end
	end
end

-- forget_stuck looks at some of those that wait for a person, others at each time: what was decided meanwhile is met.
local function forget_stuck()
	local n = redis.call('ZCOUNT', W, NEVER, NEVER)
	if n > 0 then read(redis.call('ZRANGEBYSCORE', W, NEVER, NEVER, 'LIMIT', now % n, LOOK)) end
end

if not closed(stock) then
	take_waiting()
	take_unknown(LEASED, now - grace)
	take_unknown(ASKED, now)
	forget_stuck()
	drop(gone)
end
taken = taken + #orders / LISTED
if #orders > 0 then note(stock, 'taken', digits(taken)) end
local reply = hint(stock)
for i, v in ipairs({among(0, LEASED), among(LEASED, ASKED), redis.call('ZCOUNT', W, digits(ASKED), '+inf'), taken,
	oldest, orders, asks, expired}) do
	reply[HINT + i] = v
end
return reply
