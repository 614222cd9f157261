-- decide says what becomes of n orders of the queue, one after another.
-- ARGV: events, now, keep, how many ms answers are kept, n, n serials, n answers; where one of them does not confirm,
--   then of each: move, lease, time, from when on it is handed out again (not_now)
-- Reply: false without a ledger, else the hint and what came of each.

local CHANGED, ALREADY = 1, 2
local WAS_RELEASED, WAS_SOLD, NOT_FOUND, TOO_LATE, NOT_QUEUED, WAS_REFUNDED = -4, -7, -8, -9, -10, -11

local now, keep, answer_for, n = number('ARGV', ARGV[2], 'now'), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local stock = load()
if not stock then
	return false
end

local records = redis.call('HMGET', R, unpack(ARGV, 6, 5 + n))
local moves = #ARGV > 14 + 2 * n -- else all confirm
local entries = moves and redis.call('HMGET', A, unpack(ARGV, 6, 5 + n)) or {}
local fresh, known = {}, {} -- records and entries by serial, as earlier ones of this call have left them
local confirmed, released = change(ARGV[2]), {}
local ended = {} -- serials
local kept, repeated = {}, {} -- serial, answer, ...; the same of what was confirmed before: the first answer stands

-- attempted reports whether the attempt in question is the last one, and not over.
local function attempted(d)
	return d.e and d.e.lease == d.lease and at(d.serial) >= LEASED
end

-- release gives the units back; commit_released writes it.
local function release(d)
	released[#released + 1], ended[#ended + 1] = d, d.serial
	if d.answer ~= '' then push(kept, d.serial, d.answer) end
	fresh[d.serial] = encode('X', d.text, keep, d.user)
	return CHANGED
end

local function asked(time) return time == NEVER and NEVER or after(ASKED, tonumber(time)) end

-- wait has an order wait again where it was; one of an earlier epoch is asked about first.
local function wait(d)
	local e, move = d.e, d.move
	local known = e.epoch == stock.epoch
	if known and (move == 'unsent' or move == 'not_now') then e.attempt = math.max(e.attempt - 1, 0) end
	if move == 'not_now' then e.place = after(LATER, math.min(d.from, tonumber(e.till))) end
	if move == 'repeat' then e.open = true end
	if move == 'nowhere' then e.open = false end
	keep_entry(e, stock)
	redis.call('ZADD', W, known and e.place or asked(d.time), d.serial)
	return CHANGED
end

-- later has it asked about from a time on. One of an earlier epoch keeps that: the next that meets it waits for longer.
local function later(d)
	redis.call('HSET', A, d.serial, entry_text(d.e))
	redis.call('ZADD', W, asked(d.time), d.serial)
	return CHANGED
end

-- requeue is a person's word that no attempt made the order.
local function requeue(d)
	local e = d.e
	if not e or redis.call('ZSCORE', W, d.serial) ~= NEVER then return e and TOO_LATE or NOT_QUEUED end
	if tonumber(d.time) <= now then return TOO_LATE end
	e.attempt, e.deadline, e.till, e.open = 0, '0', d.time, false
	keep_entry(e, stock)
	redis.call('ZADD', W, e.place, d.serial)
	return CHANGED
end

local function cancel(d)
	local e = d.e
	if not e then return NOT_QUEUED end
	-- it must wait since it was reserved, or since its last attempt came to nothing, as far as nothing was lost
	if closed(stock) or e.open or e.epoch ~= stock.epoch or at(d.serial) >= LEASED then return TOO_LATE end
	return release(d)
end

local function decided(d)
	if d.state == 'C' then
		if d.move ~= 'confirm' then return WAS_SOLD end
		push(repeated, d.serial, d.answer)
		return ALREADY
	end
	if d.move == 'release' or d.move == 'cancel' then return ALREADY end
	return d.state == 'R' and WAS_REFUNDED or WAS_RELEASED
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
local ARGV = ARGV
for i = 1, n do
	local serial = ARGV[5 + i]
	local first = 2 + 2 * n + 4 * i
	local record, move, said = fresh[serial] or records[i], moves and ARGV[first] or 'confirm', ARGV[5 + n + i]
	local state, quantity, user, _, text = nil, 0, '', '', '0'
	if record then state, quantity, user, _, text = decode(serial, record) end
	if not record then
		done[i] = NOT_FOUND
	elseif state == 'H' and move == 'confirm' then
		record = 'C|' .. text .. '|0|' .. user -- as encode has it
		taken[place + 1], taken[place + 2] = serial, record
		fields[f + 1], fields[f + 2] = 'r:' .. serial, record
		place, f, sold = place + 2, f + 2, sold + quantity
		fresh[serial], undue[#undue + 1], ended[#ended + 1], done[i] = record, serial, serial, CHANGED
		if said ~= '' then push(kept, serial, said) end
	else
		if state == 'H' and not known[serial] then
			local request = not entries[i] and redis.call('HGET', O, serial)
			known[serial] = entry(serial, entries[i], request, request and at(serial))
		end
		done[i] = decide({serial = serial, move = move, answer = said, state = state, quantity = quantity, text = text,
			user = user, e = known[serial], lease = tonumber(ARGV[first + 1]), time = ARGV[first + 2],
			from = tonumber(ARGV[first + 3])})
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

local function keep_answers(list)
	if #list == 0 then return end
	local key, left = answers(answer_for)
	redis.call('HSET', key, unpack(list))
	redis.call('PEXPIRE', key, digits(left))
end

if place > 0 then
	stock.held, stock.sold = stock.held - sold, stock.sold + sold
	commit(stock, 'confirm', confirmed)
end
if #released > 0 then commit_released() end
drop(ended)
keep_answers(kept)
for i = 1, #repeated, 2 do
	local serial, said = repeated[i], repeated[i + 1]
	if said ~= '' and answer(serial) == '' then keep_answers({serial, said}) end
end
local reply = hint(stock)
for i = 1, n do reply[HINT + i] = done[i] end
return reply
