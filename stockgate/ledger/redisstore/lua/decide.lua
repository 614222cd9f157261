-- decide says what becomes of one order of the queue.
-- ARGV: events, now, keep, serial, move, lease, time, answer, how many ms the answer is kept,
--   from when on it is handed out again (not_now)
-- KEYS[11] is where the answer is kept.
-- Reply: false without a ledger, else the hint and what came of it.

local CHANGED, ALREADY = 1, 2
local WAS_RELEASED, WAS_SOLD, NOT_FOUND, TOO_LATE, NOT_QUEUED = -4, -7, -8, -9, -10

local now, keep, serial, move = number('ARGV', ARGV[2], 'now'), ARGV[3], ARGV[4], ARGV[5]
local lease, time, answer, answer_for, from = tonumber(ARGV[6]), ARGV[7], ARGV[8], ARGV[9], tonumber(ARGV[10])
local ANSWER = KEYS[11]
local stock = load()
if not stock then
	return false
end
local record = redis.call('HGET', R, serial)
local e = entry(serial, redis.call('HGET', A, serial) or '')
local state, quantity, user, _, text
if record then state, quantity, user, _, text = decode(serial, record) end

-- waits reports an order that was not handed out since it was reserved, or since its last attempt came to nothing, as
-- far as the ledger has lost nothing.
local function waits() return redis.call('ZSCORE', W, serial) and e.epoch == stock.epoch end

-- attempted reports whether the attempt in question is the last one, and not over.
local function attempted()
	return e and e.lease == lease and not redis.call('ZSCORE', W, serial)
end

local function keep_answer()
	if answer ~= '' then redis.call('SET', ANSWER, answer, 'PX', answer_for) end
end

-- settle makes the reservation sold (C) or released (X), as finish.lua does.
local function settle(to, op)
	local c = change(ARGV[2])
	stock.held = stock.held - quantity
	if to == 'C' then
		stock.sold = stock.sold + quantity
		c.undue[1] = serial
		put(c, serial, encode('C', text, '0', user))
	else
		c.units[user] = number(U, redis.call('HGET', U, user) or '0', 'units of ', user) - quantity
		push(c.due, keep, serial)
		put(c, serial, encode('X', text, keep, user))
	end
	commit(stock, op, c)
	drop({serial})
	keep_answer()
	return CHANGED
end

-- wait has an order wait again where it was; one of an earlier epoch is asked about first.
local function wait()
	local known = e.epoch == stock.epoch
	if known and (move == 'unsent' or move == 'not_now') then e.attempt = math.max(e.attempt - 1, 0) end
	if move == 'not_now' then e.place = digits(LATER + from) end
	if move == 'repeat' then e.open = true end
	if move == 'nowhere' then e.open = false end
	keep_entry(e, stock)
	redis.call('ZREM', L, serial)
	redis.call('ZREM', K, serial)
	if known then redis.call('ZADD', W, e.place, serial) else redis.call('ZADD', K, time, serial) end
	return CHANGED
end

-- later has it asked about from a time on. One of an earlier epoch keeps that: the next that meets it waits for longer.
local function later()
	redis.call('ZREM', L, serial)
	redis.call('ZADD', K, time, serial)
	return CHANGED
end

-- requeue is a person's word that no attempt made the order.
local function requeue()
	if not e or redis.call('ZSCORE', K, serial) ~= NEVER then return e and TOO_LATE or NOT_QUEUED end
	if tonumber(time) <= now then return TOO_LATE end
	e.attempt, e.deadline, e.till, e.open = 0, '0', tonumber(time), false
	keep_entry(e, stock)
	redis.call('ZREM', K, serial)
	redis.call('ZADD', W, e.place, serial)
	return CHANGED
end

local function cancel()
	if not e then return NOT_QUEUED end
	if closed(stock) or e.open then return TOO_LATE end
	return waits() and settle('X', 'release') or TOO_LATE
end

local function decided()
	if state == 'C' then return move == 'confirm' and ALREADY or WAS_SOLD end
	if move == 'release' or move == 'cancel' then return ALREADY end
	return WAS_RELEASED
end

local function decide()
	if not record then return NOT_FOUND end
	if state ~= 'H' then return decided() end
	if move == 'confirm' then return settle('C', 'confirm') end
	if move == 'cancel' then return cancel() end
	if move == 'requeue' then return requeue() end
	if not attempted() then return e and TOO_LATE or NOT_QUEUED end
	if move == 'release' then return settle('X', 'release') end
	if move == 'later' then return later() end
	return wait()
end

local done = decide()
if done == ALREADY and move == 'confirm' and redis.call('EXISTS', ANSWER) == 0 then keep_answer() end
local reply = hint(stock)
reply[HINT + 1] = done
return reply
