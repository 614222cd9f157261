-- What the scripts of orders that wait have in common. They have six keys more than the others, of the same slot:
--   W  zset    serial -> where the order is:
--              its number while it waits, the oldest has the lowest; or LATER + Unix ms when it may be handed out
--              LEASED + Unix ms: it was handed out, until the end of its attempt; a grace follows
--              ASKED + Unix ms when it is asked about, since its attempt has an unknown outcome; NEVER = by a person
--   O  hash    serial -> number|epoch|until|request: its place among those that wait, the epoch in which it was
--              reserved, and when no attempt begins any more
--   A  hash    serial -> attempt|deadline|number|epoch|until|lease|open: of the last attempt and its end; as above,
--              since this was written; how often it was handed out, which never falls; 1 = an attempt may have made the
--              order, and another one goes out nevertheless. What was handed out once at most, and not heard of since,
--              is not in it
-- and three hashes of serial -> answer, each for as long as an answer is kept, in turn: see answers().
-- An order is in W and O. S counts numbered, the numbers given out, and taken, the attempts.
--
-- Only what R holds counts. An order that was decided is forgotten here when it is met, or by the decision itself.
--
-- A ledger that has lost its last changes has another epoch. What O and A say in an earlier one may have been followed
-- by attempts that no instance knows of, so the order is asked about before it is sent again, once those have ended.
--
-- Redis' Lua reads each byte of a string that is made, so that a request costs more than all the rest of its order: it
-- is never taken apart.
local W, O, A = KEYS[6], KEYS[7], KEYS[8]

local LATER, LEASED, ASKED = 10000000000000, 20000000000000, 30000000000000
local NEVER = '999999999999999'

-- after is a place in W: a time behind one of these.
local function after(place, time) return digits(place + math.min(time, LATER - 1)) end

-- at is where an order is.
local function at(serial) return tonumber(redis.call('ZSCORE', W, serial) or ASKED) end

-- entry reads what A says of an order, or O where A has nothing: then its place in W tells whether it was handed out,
-- and when its attempt ends. nil: it is in no queue.
local function entry(serial, text, request, at)
	if text then
		local attempt, deadline, place, epoch, till, lease, open = match(text,
			'^(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|([01])$')
		return attempt and {serial = serial, text = text, attempt = tonumber(attempt), deadline = deadline, place = place,
			epoch = tonumber(epoch), till = till, lease = tonumber(lease), open = open == '1'}
	end
	local place, epoch, till = match(request or '', '^(%d+)|(%d+)|(%d+)|')
	if not place then return nil end
	local n, deadline = 0, '0'
	if at >= LEASED then n, deadline = 1, digits(at - LEASED) end
	return {serial = serial, request = request, attempt = n, place = place, epoch = tonumber(epoch), till = till,
		lease = n, open = false, deadline = deadline}
end

-- entry_text is e as A has it.
local function entry_text(e)
	e.text = digits(e.attempt) .. '|' .. e.deadline .. '|' .. e.place .. '|' .. digits(e.epoch) .. '|' .. e.till .. '|' ..
		digits(e.lease) .. '|' .. (e.open and '1' or '0')
	return e.text
end

-- keep_entry writes e, from now on of this epoch.
local function keep_entry(e, stock)
	e.epoch = stock.epoch
	redis.call('HSET', A, e.serial, entry_text(e))
end

-- drop forgets orders that are decided.
local function drop(serials)
	if #serials == 0 then return end
	redis.call('ZREM', W, unpack(serials))
	redis.call('HDEL', O, unpack(serials))
	redis.call('HDEL', A, unpack(serials))
end

-- closed reports a ledger that may have lost its last changes: nothing is handed out. What waits is delivered of a SKU
-- that is paused or has ended, too, whose state does not read verifying.
local function closed(stock) return stock.state == 'frozen' or RUN ~= '' and stock.run ~= RUN end

-- answers tells which hash keeps an answer from now on, and for how long it does. The next one follows after a time,
-- and the first one again when it is empty: an answer is kept for that time at least, and for twice as long at most.
local function answers(time)
	local now = clock()
	local turn = math.floor(now / time)
	return KEYS[9 + turn % 3], (turn + 2) * time - now
end

-- answer is what is kept of an order, or ''.
local function answer(serial)
	for i = 9, 11 do
		local text = redis.call('HGET', KEYS[i], serial)
		if text then return text end
	end
	return ''
end
