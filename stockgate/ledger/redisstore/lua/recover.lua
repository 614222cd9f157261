-- recover puts back what one instance knows of orders that the ledger may have lost, and opens a frozen ledger once
-- everybody on the roll has told all.
-- ARGV: events, now, keep, phase (0 = more follows), settle (ms), n, n serials, n users, n quantities, n states, n times, n epochs
--   in which they were made, n epochs and n versions in which that was done
-- Reply: false without a ledger, else all numbers, of which done is 1 when it was opened now; the time of the caller's
-- last call that was known; was; how many records were put back; then the names of those who have not told all.
--
-- A state is what the caller knows: H held, C confirmed, X released, R refunded, A adopted. In lower case it knows that
-- alone, and not the order: then only what is there is changed. What was decided is decided otherwise only by what was
-- done after that which the ledger still had. What comes again changes nothing. Orders of a ledger before this one, and
-- those that were archived, are passed over.

local keep, phase, settle, n = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local stock = load()
if not stock then
	return false
end

-- What a record becomes, by what the caller says and what is there; nothing when it stays.
local becomes = {
	H = {none = 'H'},
	C = {none = 'C', H = 'C'},
	X = {none = 'X', H = 'X'},
	R = {none = 'R', H = 'R', C = 'R'},
	A = {none = 'C', H = 'C', X = 'C', R = 'C'},
}

-- What makes something else of what was decided already. What is told late frees no unit of an open ledger: another
-- instance may have adopted the order since.
local turns = {CR = true, XC = true, RC = true}
local upto_epoch, upto_ver = string.match(redis.call('HGET', S, 'upto') or '', '^(%d+)|(%d+)$')
upto_epoch, upto_ver = tonumber(upto_epoch or 0), tonumber(upto_ver or 0)

-- The epoch since which orders count.
local first = math.max(stock.born, stock.sale, tonumber(redis.call('HGET', S, 'archived') or 0))

local function newer(epoch, ver) return epoch > upto_epoch or epoch == upto_epoch and ver > upto_ver end

local function arg(column, i) return ARGV[6 + column * n + i] end

local c = change(ARGV[2])

local function has(user)
	return c.units[user] or number(U, redis.call('HGET', U, user) or '0', 'units of ', user)
end

-- count adds the units of a record in a state to the numbers, or takes them away.
local function count(state, quantity, user)
	if state == 'H' then stock.held = stock.held + quantity end
	if state == 'C' then stock.sold = stock.sold + quantity end
	if state == 'H' or state == 'C' then c.units[user] = has(user) + quantity end
end

local function restore(i, record)
	local serial, user, text, said, time = arg(0, i), arg(1, i), arg(2, i), arg(3, i), arg(4, i)
	if tonumber(arg(5, i)) < first then return 0 end
	local from, bare = 'none', said ~= string.upper(said)
	if record then
		local state, _, who, _, had = decode(serial, record)
		from = state
		if from == 'H' or from == 'C' or bare then user, text = who, had end
	elseif bare then
		return 0
	end
	local to = becomes[string.upper(said)][from]
	if not to or from .. to == 'CR' and stock.state ~= 'frozen' or
		turns[from .. to] and not newer(tonumber(arg(6, i)), tonumber(arg(7, i))) then return 0 end
	local quantity = units_of('ARGV', text, serial)
	count(from, -quantity, user)
	count(to, quantity, user)
	if to == 'C' then
		time = '0'
		c.undue[#c.undue + 1] = serial
	else
		if to ~= 'H' then time = keep end
		push(c.due, time, serial)
	end
	put(c, serial, encode(to, text, time, user))
	return 1
end

local restored = 0
if n > 0 then
	local records = redis.call('HMGET', R, unpack(ARGV, 7, 6 + n))
	for i = 1, n do restored = restored + restore(i, c.fresh[arg(0, i)] or records[i]) end
	if restored > 0 then commit(stock, 'recover', c) end
end

-- tell notes how far the caller is, and returns who is not as far, and the fields of the roll.
local function tell_all(at)
	note(stock, 'rc:' .. WHO, digits(phase) .. '|' .. digits(at))
	local all, waits, fields = redis.call('HGETALL', S), {}, {'rc:' .. WHO}
	for i = 1, #all, 2 do
		local name = string.match(all[i], '^rc:(.*)$')
		if name and name ~= WHO then
			fields[#fields + 1] = all[i]
			if tonumber(string.sub(all[i + 1], 1, 1)) < phase then waits[#waits + 1] = name end
		end
	end
	return waits, fields
end

local function open(state, fields)
	stock.state, stock.why = state, ''
	note(stock, 'why', '')
	if stock.run ~= RUN then trust(stock) end
	local opened = change()
	push(opened.fields, 'why', '')
	commit(stock, 'state', opened)
	redis.call('HDEL', S, unpack(fields))
end

local was, since = unpack(redis.call('HMGET', S, 'was', 'since'))
local at = asked(stock) and tonumber(string.match(stock.roll, '|(%d+)$')) or stock.here
local waits, opened = {}, 0
if phase > 0 and stock.state == 'frozen' and WHO ~= '' then
	local fields
	waits, fields = tell_all(at)
	local by_hand = stock.by_hand or stock.why == 'operator' or not was or was == 'frozen'
	local ready = phase == 2 and #waits == 0 and not by_hand
	if ready and clock() >= tonumber(since or 0) + settle then
		open(was, fields)
		opened = 1
	end
end
local reply = whole(stock, opened)
for _, v in ipairs({at, was or '', restored, waits}) do reply[#reply + 1] = v end
return reply
