-- What the scripts of orders that wait have in common. They have five keys more than the others, of the same slot:
--   W  zset    serial -> number: orders that wait, the oldest with the lowest number
--   L  zset    serial -> Unix ms: orders that were handed out, until the end of their attempt and the grace
--   O  hash    serial -> the request
--   A  hash    serial -> attempt|deadline|number|epoch|until|lease|open: of the last attempt and its end, 0|0 before the
--              first one; the place among those that wait; the epoch in which this was written; when no attempt begins
--              any more; how often it was handed out, which never falls; 1 = an attempt may have made the order, and
--              another one goes out nevertheless
--   K  zset    serial -> Unix ms when an order is asked about whose attempt has an unknown outcome; NEVER = by a person
-- An order is in one of W, L and K, and in A and O. S counts numbered, the numbers given out, and taken, the attempts.
--
-- Only what R holds counts. An order that was decided is forgotten here when it is met, or by the decision itself.
--
-- A ledger that has lost its last changes has another epoch. What A says in an earlier one may have been followed by
-- attempts that no instance knows of, so the order is asked about before it is sent again: in K, until those have ended.
local W, L, O, A, K = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]

local NEVER = '999999999999999'

-- A place from LATER on is behind all others; the rest of it is when the order may be handed out, in Unix ms.
local LATER = 10000000000000

-- entry reads what A says of an order; nil when it is in no queue.
local function entry(serial, text)
	local attempt, deadline, place, epoch, till, lease, open = match(text or '',
		'^(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|([01])$')
	if not attempt then return nil end
	return {serial = serial, text = text, attempt = tonumber(attempt), deadline = deadline, place = place,
		epoch = tonumber(epoch), till = till, lease = tonumber(lease), open = open == '1'}
end

-- entry_text is e as A has it from now on, in this epoch.
local function entry_text(e, stock)
	e.epoch = stock.epoch
	e.text = digits(e.attempt) .. '|' .. e.deadline .. '|' .. e.place .. '|' .. digits(e.epoch) .. '|' .. e.till .. '|' ..
		digits(e.lease) .. '|' .. (e.open and '1' or '0')
	return e.text
end

local function keep_entry(e, stock) redis.call('HSET', A, e.serial, entry_text(e, stock)) end

-- drop forgets orders that are decided.
local function drop(serials)
	if #serials == 0 then return end
	if redis.call('ZREM', L, unpack(serials)) < #serials then -- most were handed out
		for _, key in ipairs({W, K}) do redis.call('ZREM', key, unpack(serials)) end
	end
	for _, key in ipairs({O, A}) do redis.call('HDEL', key, unpack(serials)) end
end

-- closed reports a ledger that may have lost its last changes: nothing is handed out.
local function closed(stock) return stock.state == 'frozen' or stock.state == 'verifying' end
