-- decide says what becomes of n orders of the queue, one after another.
-- ARGV: events, now, keep, how many ms answers are kept, n, then of each: serial, move, lease, time, answer, from when on
--   it is handed out again (not_now)
-- KEYS[10 + i] is where the answer to the i-th is kept.
-- Reply: false without a ledger, else the hint and what came of each.

local CHANGED, ALREADY = 1, 2
local WAS_RELEASED, WAS_SOLD, NOT_FOUND, TOO_LATE, NOT_QUEUED = -4, -7, -8, -9, -10

local now, keep, answer_for, n = number('ARGV', ARGV[2], 'now'), ARGV[3], ARGV[4], tonumber(ARGV[5])
local stock = load()
if not stock then
	return false
end

local serials, read_entries = {}, false
for i = 1, n do
	serials[i] = ARGV[6 * i]
	read_entries = read_entries or ARGV[6 * i + 1] ~= 'confirm'
end
local records = redis.call('HMGET', R, unpack(serials))
local entries = read_entries and redis.call('HMGET', A, unpack(serials)) or {}
local fresh, known = {}, {} -- records and entries by serial, as earlier ones of this call have left them
local confirmed, released = change(ARGV[2]), {}
local ended, answers = {}, {} -- serials; which ones have an answer to keep

-- waits reports an order that was not handed out since it was reserved, or since its last attempt came to nothing, as
-- far as the ledger has lost nothing.
local function waits(e) return redis.call('ZSCORE', W, e.serial) and e.epoch == stock.epoch end

-- attempted reports whether the attempt in question is the last one, and not over.
local function attempted(d)
	local e = d.e
	return e and e.lease == d.lease and not redis.call('ZSCORE', W, d.serial)
end

-- release gives the units back; commit_released writes it.
local function release(d)
	released[#released + 1], ended[#ended + 1], answers[#answers + 1] = d, d.serial, d.i
	fresh[d.serial] = encode('X', d.text, keep, d.user)
	return CHANGED
end

-- wait has an order wait again where it was; one of an earlier epoch is asked about first.
local function wait(d)
	local e, move = d.e, d.move
	local known = e.epoch == stock.epoch
	if known and (move == 'unsent' or move == 'not_now') then e.attempt = math.max(e.attempt - 1, 0) end
	if move == 'not_now' then e.place = digits(LATER + math.min(d.from, tonumber(e.till))) end
	if move == 'repeat' then e.open = true end
	if move == 'nowhere' then e.open = false end
	keep_entry(e, stock)
	redis.call('ZREM', L, d.serial)
	redis.call('ZREM', K, d.serial)
	if known then redis.call('ZADD', W, e.place, d.serial) else redis.call('ZADD', K, d.time, d.serial) end
	return CHANGED
end

-- later has it asked about from a time on. One of an earlier epoch keeps that: the next that meets it waits for longer.
local function later(d)
	redis.call('ZREM', L, d.serial)
	redis.call('ZADD', K, d.time, d.serial)
	return CHANGED
end

-- requeue is a person's word that no attempt made the order.
local function requeue(d)
	local e = d.e
	if not e or redis.call('ZSCORE', K, d.serial) ~= NEVER then return e and TOO_LATE or NOT_QUEUED end
	if tonumber(d.time) <= now then return TOO_LATE end
	e.attempt, e.deadline, e.till, e.open = 0, '0', d.time, false
	keep_entry(e, stock)
	redis.call('ZREM', K, d.serial)
	redis.call('ZADD', W, e.place, d.serial)
	return CHANGED
end

local function cancel(d)
	local e = d.e
	if not e then return NOT_QUEUED end
	if closed(stock) or e.open then return TOO_LATE end
	return waits(e) and release(d) or TOO_LATE
end

local function decided(d)
	if d.state == 'C' then
		if d.move ~= 'confirm' then return WAS_SOLD end
		answers[#answers + 1] = d.i
		return ALREADY
	end
	if d.move == 'release' or d.move == 'cancel' then return ALREADY end
	return WAS_RELEASED
end

local function decide(d)
	if d.state ~= 'H' then return decided(d) end
	if d.move == 'cancel' then return cancel(d) end
	if d.move == 'requeue' then return requeue(d) end
	if not attempted(d) then return d.e and TOO_LATE or NOT_QUEUED end
	if d.move == 'release' then return release(d) end
	if d.move == 'later' then return later(d) end
	return wait(d)
end

-- As in reserve.lua, what most orders need is written out: they are confirmed.
local fields, taken, undue = confirmed.fields, confirmed.records, confirmed.undue
local done, place, sold, f = {}, 0, 0, #fields
for i, serial in ipairs(serials) do
	local at, record = 6 * i, fresh[serial] or records[i]
	local move, state, quantity, user, _, text = ARGV[at + 1], nil, 0, '', '', '0'
	if record then state, quantity, user, _, text = decode(serial, record) end
	if not record then
		done[i] = NOT_FOUND
	elseif state == 'H' and move == 'confirm' then
		record = 'C|' .. text .. '|0|' .. user -- as encode has it
		taken[place + 1], taken[place + 2] = serial, record
		fields[f + 1], fields[f + 2] = 'r:' .. serial, record
		place, f, sold = place + 2, f + 2, sold + quantity
		fresh[serial], undue[#undue + 1], ended[#ended + 1] = record, serial, serial
		answers[#answers + 1], done[i] = i, CHANGED
	else
		known[serial] = known[serial] or entry(serial, entries[i])
		done[i] = decide({i = i, serial = serial, move = move, state = state, quantity = quantity, text = text,
			user = user, e = known[serial], lease = tonumber(ARGV[at + 2]), time = ARGV[at + 3],
			from = tonumber(ARGV[at + 5])})
	end
end

-- commit_released writes those that are free now.
local function commit_released()
	local c = change(ARGV[2])
	for _, d in ipairs(released) do
		stock.held = stock.held - d.quantity
		c.units[d.user] = (c.units[d.user] or number(U, redis.call('HGET', U, d.user) or '0', 'units of ', d.user)) -
			d.quantity
		push(c.due, keep, d.serial)
		put(c, d.serial, fresh[d.serial])
	end
	commit(stock, 'release', c)
end

if place > 0 then
	stock.held, stock.sold = stock.held - sold, stock.sold + sold
	commit(stock, 'confirm', confirmed)
end
if #released > 0 then commit_released() end
drop(ended)
for _, i in ipairs(answers) do -- the first one stands
	if ARGV[6 * i + 4] ~= '' then redis.call('SET', KEYS[10 + i], ARGV[6 * i + 4], 'PX', answer_for, 'NX') end
end
local reply = hint(stock)
for i = 1, n do reply[HINT + i] = done[i] end
return reply
