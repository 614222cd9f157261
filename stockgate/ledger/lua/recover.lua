-- recover puts back what one instance knows of orders that the ledger may have lost, and opens a frozen ledger once
-- everybody on the roll has told all.
-- ARGV: events, now, keep, phase (0 = more follows), the epoch in which the caller has told so far (0 = any), settle
-- (ms), n,
--   n serials, n users, n quantities, n states, n times, n epochs in which they were made, n epochs and n versions in
--   which that was done
-- Reply: false without a ledger, else all numbers, of which done is 1 when it was opened now; the time of the caller's
-- last call that was known; was; how many records were put back; then the names of those who have not told all.
--
-- A state is what the caller knows: H held, C sold, X released, R refunded, A adopted. In lower case it knows that
-- alone, and not the order: then only what is there is changed, and r leaves a tombstone of no units where nothing is.
-- Who tells the order later does not put it back as sold; the tombstone is of its units and user then. What comes again
-- changes nothing. Orders of a ledger before this one, and those that were archived, are passed over.

local keep, phase, told_in = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local settle, n = tonumber(ARGV[6]), tonumber(ARGV[7])
local stock = load()
if not stock then
	return false
end

-- What was told before the stock froze again, by this call or by another's, may be gone: nothing is told in this epoch.
if stock.froze or told_in > 0 and told_in < stock.epoch then phase = 0 end

-- upto is what was there when the stock froze. What a record without a version says was done by then; in an open stock
-- it may have been done since, and is later than whatever was adopted before.
local upto = string.match(redis.call('HGET', S, 'upto') or '', '^%d+|%d+$') or '0|0'
if stock.state ~= 'frozen' then upto = '999999999999999|0' end

-- The epoch since which orders count.
local first = math.max(stock.born, stock.sale, tonumber(redis.call('HGET', S, 'archived') or 0))

-- later reports whether a version, as epoch|ver, is a later one than another.
local function later(a, b)
	local epoch, ver = string.match(a, '^(%d+)|(%d+)$')
	local epoch2, ver2 = string.match(b, '^(%d+)|(%d+)$')
	epoch, ver, epoch2, ver2 = tonumber(epoch), tonumber(ver), tonumber(epoch2), tonumber(ver2)
	return epoch > epoch2 or epoch == epoch2 and ver > ver2
end

-- merge is what a record in a state becomes when a witness tells another state of the order; nothing when it stays as
-- it is. It is Merge, and has the same table of cases (mergeCases).
--
-- What is final wins, never what is newest: none < held < sold < refunded, held < released. A sold order that is told
-- released stays sold, and a released one that is told sold stays released.
-- An operator alone, who has seen the books of the shop, says that an order exists although it was given back: he
-- adopts it. From then on it is another order, so to speak: an adoption and a give-back of one order are of the version
-- in which the ledger did them, and the later one wins; of one version the give-back. So a give-back of before frees no
-- unit of an adopted order, and an adoption of before does not turn back a later give-back.
local function merge(there, at, said, done)
	if there == 'none' then return said == 'A' and 'C' or said end
	if there == 'H' then return said == 'A' and 'C' or said ~= 'H' and said or nil end
	if said == 'A' then return (not at or later(done, at)) and 'C' or nil end
	if there == 'C' and at then
		-- A release that the ledger has answered, with a version, is of an order that was given back.
		return (said == 'R' or said == 'X' and string.sub(done, -2) ~= '|0') and not later(at, done) and said or nil
	end
	if there == 'C' then return said == 'R' and 'R' or nil end
	if (said == 'X' or said == 'R') and later(done, at) then return there end
end

local function arg(column, i) return ARGV[7 + column * n + i] end

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
	local from, at, bare, blank = 'none', nil, said ~= string.upper(said), false
	local done = arg(6, i) .. '|' .. arg(7, i)
	if record then
		local state, units, who, _, had = decode(serial, record)
		from, blank = state, state == 'R' and units == 0 and not bare
		local epoch, ver = string.match(had, '/%?(%d+)%-(%d+)$')
		at = epoch and epoch .. '|' .. ver or (from == 'X' or from == 'R') and upto or nil
		if from == 'H' or from == 'C' or bare then user, text = who, had end
	elseif bare and said ~= 'r' then
		return 0
	end
	said = string.upper(said)
	local to = merge(from, at, said, done)
	if blank and not to then to, done = from, at end
	if not to then return 0 end
	local quantity = units_of('ARGV', text, serial)
	if said == 'A' or to == 'X' or to == 'R' then text = dated(quantity, (string.gsub(done, '|', '-'))) end
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
	local records = redis.call('HMGET', R, unpack(ARGV, 8, 7 + n))
	for i = 1, n do restored = restored + restore(i, c.fresh[arg(0, i)] or records[i]) end
	if restored > 0 then commit(stock, 'recover', c) end
end

-- tell_all notes how far the caller is, and returns who is not as far, and the fields of the roll. A caller that only
-- looks hears who has not told all.
local function tell_all(at)
	if phase > 0 then note(stock, 'rc:' .. WHO, digits(phase) .. '|' .. digits(at)) end
	local far = phase > 0 and phase or 2
	local all, waits, fields = redis.call('HGETALL', S), {}, {'rc:' .. WHO}
	for i = 1, #all, 2 do
		local name = string.match(all[i], '^rc:(.*)$')
		if name and name ~= WHO then
			fields[#fields + 1] = all[i]
			if tonumber(string.sub(all[i + 1], 1, 1)) < far then waits[#waits + 1] = name end
		end
	end
	return waits, fields
end

local function open(state, fields)
	stock.state, stock.why = state, ''
	note(stock, 'why', '')
	if unverified(stock) and silent() == 0 then
		trust(stock)
	elseif unverified(stock) then
		note(stock, 'doubt', RUN .. '|' .. digits(clock())) -- PATIENCE begins now
		if state == 'on' then stock.state = 'verifying' end
	end
	local opened = change()
	push(opened.fields, 'why', reason(stock))
	commit(stock, 'state', opened)
	redis.call('HDEL', S, unpack(fields))
end

local was, since = unpack(redis.call('HMGET', S, 'was', 'since'))
local at = asked(stock) and tonumber(string.match(stock.roll, '|(%d+)$')) or stock.here
local waits, opened = {}, 0
if stock.state == 'frozen' and WHO ~= '' then
	local fields
	waits, fields = tell_all(at)
	local by_hand = stock.by_hand or stock.why == 'operator' or not was or was == 'frozen'
	local ready = phase == 2 and #waits == 0 and not by_hand
	local now, froze = clock(), tonumber(since or 0)
	if froze > now then -- by a clock that ran ahead
		froze = now
		note(stock, 'since', digits(now))
	end
	if ready and now >= froze + settle then
		open(was, fields)
		opened = 1
	end
end
local reply = whole(stock, opened)
for _, v in ipairs({at, was or '', restored, waits}) do reply[#reply + 1] = v end
return reply
