-- Whether the stock is still what its instances have seen. It comes before every script, after stock.lua.
--
-- Each call of an instance leaves a mark in S: m:<instance> is seq|at|run, the highest number of a call of its that
-- came here, when that was (ms of Redis' own clock), and on which server. Calls overtake each other, so the mark only
-- rises. A caller says what it has seen: the version, and the highest call of its own that was answered. A stock that
-- is older than that has lost something, and freezes here and now, before a unit is taken: the epoch rises, why says
-- the reason. After the epoch has risen only what was seen since counts.
--
-- A caller also says the latest sale of the SKU that it knows. A stock in an earlier one has lost the later one: it
-- freezes, and is of that sale from then on, so that its orders are known by their serials. An operator opens it, in a
-- later epoch.
--
-- Another server, which run tells, may have lost the last writes, and of those an instance knows that has not called
-- yet. So it sells nothing, its state reads verifying, until each instance has called whose mark is as fresh as the
-- others', and found what it has seen. doubt is run|since meanwhile, and run itself is none: the server before may be
-- master again. Marks have -<version> for their server: that with which it was taken away. One that does not call
-- within PATIENCE freezes the stock: nobody can tell what that one has sold. Orders are decided meanwhile, as versions
-- of their own: they must not stand for those that an instance has seen and the server has lost.
--
-- The clock may jump: it is set, or that of another server is ahead. An instance calls every second, so one that finds
-- its mark older than FRESH notes jump, the times before and behind as before|behind. Marks of about the time before
-- count as made behind it, or all who have not called since would look as if they were gone for long.
--
-- Who freezes calls the roll of the instances that may know of orders that are gone: rc:<instance> is phase|at, how
-- far it has told what it knows (recover.lua), and the time of its last call that is still known here. was is the state
-- to go back to once all have told; frozen there means that an operator alone may open it. since is when it froze, upto
-- epoch|ver of what was there when it was open last.
--
-- born is the first epoch of a ledger. A caller that has seen an epoch before it knows that another ledger vanished,
-- whose orders this one may lack: it freezes until an operator has adopted them. In a ledger that was made again in
-- knowledge of that, by recreate.lua, or since then, born is 0: it takes orders of any epoch.

-- The settlers of a home are one instance, named SETTLER and the home, whose journal is the database. It leaves no
-- mark, so that a database that is away holds up no SKU: it is on the roll only where it has found that settled orders
-- are gone.

-- The last arguments of every call but one. No instance: a visitor, who leaves no mark, sees nothing missing, decides
-- no doubt.
local WHO, SEQ, ANSWERED, EPOCH, VER, SALE, RUN, LOST = unpack(ARGV, #ARGV - 8, #ARGV - 1)

local FRESH, PATIENCE, LONG = 60000, 60000, 3600000 -- ms
local CROWD = 32 -- fields of S; about fifteen are no marks

local NONE = '-' -- no server: run while none is trusted

local SETTLER = 'settle:'
local NOT_ASKED = '3' -- the phase of who was on an earlier roll alone

local met -- the stock that was read or made

local function clock()
	local t = redis.call('TIME')
	return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- stamp reads a mark: its call, time and server; all are nothing when there is none.
local function stamp(mark)
	local seq, at, run = string.match(mark or '', '^(%d+)|(%d+)|(.*)$')
	return tonumber(seq or 0), tonumber(at or 0), run
end

-- lately reads when the last call of a mark was, without the jump of the clock that the stock knows.
local function lately(mark, jump)
	local _, at = stamp(mark)
	local before, behind = string.match(jump or '', '^(%d+)|(%d+)$')
	before = tonumber(before)
	if before and math.abs(at - before) <= FRESH then at = at - before + tonumber(behind) end
	return at
end

-- note keeps a field of S for the next write of it.
local function note(stock, field, value)
	push(stock.marks, field, value)
end

-- jumped notes a jump where nobody has called for FRESH: one who alone was silent tells nothing of the clock.
local function jumped(stock, now)
	local all, newest = redis.call('HGETALL', S), 0
	for i = 1, #all, 2 do
		local _, at = stamp(string.sub(all[i], 1, 2) == 'm:' and all[i + 1] or '')
		if at <= now then newest = math.max(newest, at) end
	end
	if newest == 0 or now - newest <= FRESH then return end
	stock.jump = digits(newest) .. '|' .. digits(now)
	note(stock, 'jump', stock.jump)
end

-- begin_sale makes the stock that of another sale of the SKU: its serials are others than in those before. Either the
-- epoch rises with it, or the stock is frozen until the epoch does.
local function begin_sale(stock, sale)
	stock.sale = sale
	note(stock, 'sale', digits(sale))
end

-- common is the version up to which the caller may know the stock: one whose mark was taken away knows nothing of what
-- others have changed since. run is the server of its mark, nil where it has none.
local function common(stock, run)
	local taken = stock.run ~= RUN and string.match(run or '', '^%-(%d+)$')
	return taken and tonumber(taken) or stock.ver
end

-- seen tells how the stock is less than what the caller has seen of it, or nil. reached is its mark's highest call.
local function seen(stock, reached, run)
	local epoch, ver = tonumber(EPOCH), tonumber(VER)
	if LOST ~= '' and epoch == 0 then return LOST end
	if stock.epoch > epoch and epoch > 0 and stock.born > epoch then return 'missing' end
	if stock.sale < tonumber(SALE) then return 'version' end
	if stock.epoch > epoch then return nil end
	if LOST ~= '' then return LOST end
	if stock.epoch < epoch or common(stock, run) < ver then return 'version' end
	local answered = tonumber(ANSWERED) -- below 0 it was so long ago that there may be no mark any more
	if reached < answered or run and reached < -answered then return 'mark' end
end

-- ask puts an instance on the roll. One that has not told all since the stock froze must know what it did since the
-- call that was known then: what it could not vouch for is still missing.
local function ask(stock, name, at)
	local told = stock.was_state == 'frozen' and redis.call('HGET', S, 'rc:' .. name) or ''
	local before = string.match(told, '^[01]|(%d+)$')
	note(stock, 'rc:' .. name, '0|' .. (before or digits(at)))
end

-- roll notes who must tell what it knows: those who called as lately as the others, or are waited for. A stock that
-- freezes again waits on for those who have told nothing since it froze; by the clock alone they may look as if they
-- were gone for long. Who else was asked the last time and is not now is nobody's concern any more.
local function roll(stock)
	local all, newest, verifying = redis.call('HGETALL', S), 0, string.match(stock.doubt or '', '^(.*)|%d+$') == RUN
	local jump = stock.jump
	for i = 1, #all, 2 do
		if string.sub(all[i], 1, 2) == 'm:' then newest = math.max(newest, lately(all[i + 1], jump)) end
	end
	newest = math.min(newest, clock()) -- or one mark of a clock that ran ahead would leave all others out
	local called = {}
	for i = 1, #all, 2 do
		local kind, name = string.match(all[i], '^(%a+):(.*)$')
		local _, at, run = stamp(all[i + 1])
		if kind == 'm' and name ~= WHO and (lately(all[i + 1], jump) >= newest - FRESH or verifying and run ~= RUN) then
			called[name] = true
			ask(stock, name, at)
		end
	end
	for i = 1, #all, 2 do
		local name = string.match(all[i], '^rc:(.*)$')
		local told = stock.was_state ~= 'frozen' or string.sub(all[i + 1], 1, 1) >= '2'
		if name and name ~= WHO and not called[name] and told then note(stock, all[i], NOT_ASKED .. '|0') end
	end
	-- A settler of a later ledger has no word for this one; an operator opens it.
	if WHO ~= '' and (string.sub(WHO, 1, #SETTLER) ~= SETTLER or stock.epoch >= tonumber(EPOCH)) then
		ask(stock, WHO, stock.here)
	end
end

-- outrun reports whether the caller has seen a later epoch or sale. An operator alone may open the stock then, in that
-- sale and behind that epoch, and behind what was said of the stock itself before.
local function outrun(stock)
	local behind = stock.sale < tonumber(SALE)
	if not behind and stock.epoch >= tonumber(EPOCH) then return false end
	if behind then begin_sale(stock, tonumber(SALE)) end
	stock.later = digits(math.max(tonumber(EPOCH), stock.epoch, tonumber(SALE), tonumber(stock.later)))
	note(stock, 'later', stock.later)
	stock.by_hand = true
	note(stock, 'was', 'frozen')
	return true
end

-- freeze closes the stock for a reason, as a version of its own, in an epoch of its own: whatever was said before
-- counts no more. Where the caller has seen a later epoch, there is a later ledger on another server: that one this
-- must not outrun, so the epoch stays, and later is what an operator who opens this one must begin behind.
local function freeze(stock, why)
	local older, by_hand = stock.epoch < tonumber(EPOCH), outrun(stock)
	if why == 'missing' or stock.was_state == 'frozen' and stock.why == 'operator' then
		note(stock, 'was', 'frozen')
	elseif stock.was_state ~= 'frozen' and not by_hand then
		note(stock, 'was', stock.was_state)
	end
	if stock.was_state ~= 'frozen' then
		note(stock, 'upto', digits(stock.epoch) .. '|' .. digits(stock.ver))
	end
	if why == 'missing' then
		stock.born = 0
		note(stock, 'born', '0')
	end
	note(stock, 'since', digits(clock()))
	roll(stock)
	if not older then
		stock.epoch = stock.epoch + 1
	end
	stock.state, stock.why, stock.froze = 'frozen', why, why
	note(stock, 'why', why)
	local c = change()
	push(c.fields, 'why', why)
	commit(stock, 'state', c)
end

-- trust ends every doubt about the server that runs this.
local function trust(stock)
	stock.run = RUN
	note(stock, 'run', RUN)
	note(stock, 'doubt', '')
end

-- arrive begins the doubt of a server when another one was trusted or doubted before, and takes the marks away: no
-- instance has called this server since, even if it did when this one was master the last time. Those that were gone
-- before get one of this server: whose mark is much older than the newest. Those that the server in doubt before this
-- one waits for are none of them.
local function arrive(stock, now)
	local before = string.match(stock.doubt or '', '^(.*)|%d+$')
	if before == RUN then return end
	local all, marks, newest = redis.call('HGETALL', S), {}, 0
	for i = 1, #all, 2 do
		if string.sub(all[i], 1, 2) == 'm:' then
			local seq, at, run = stamp(all[i + 1])
			local last = lately(all[i + 1], stock.jump)
			newest = math.max(newest, last)
			push(marks, all[i], {seq = seq, at = at, run = run, last = last})
		end
	end
	newest = math.min(newest, clock())
	for i = 1, #marks, 2 do
		local mark = marks[i + 1]
		local gone = (not before or mark.run == before) and mark.last < newest - FRESH
		local to = gone and RUN or string.match(mark.run, '^%-%d+$') or NONE .. digits(stock.ver)
		redis.call('HSET', S, marks[i], digits(mark.seq) .. '|' .. digits(mark.at) .. '|' .. to)
	end
	stock.run, stock.doubt = NONE, RUN .. '|' .. digits(now)
	note(stock, 'run', NONE)
	note(stock, 'doubt', stock.doubt)
end

-- silent counts the instances that have not called this server yet.
local function silent()
	local all, n = redis.call('HGETALL', S), 0
	for i = 1, #all, 2 do
		local _, _, run = stamp(string.sub(all[i], 1, 2) == 'm:' and all[i + 1] or '')
		if run and run ~= RUN and all[i] ~= 'm:' .. WHO then n = n + 1 end
	end
	return n
end

-- doubt decides whether the stock of another server may be trusted now.
local function doubt(stock, now)
	local since = tonumber(string.match(stock.doubt, '|(%d+)$'))
	if silent() == 0 then
		trust(stock)
	elseif since <= now and now - since > PATIENCE then
		freeze(stock, 'silent')
	else
		if since > now then note(stock, 'doubt', RUN .. '|' .. digits(now)) end -- by a clock that ran ahead
		if stock.state == 'on' then stock.state = 'verifying' end
	end
end

-- asked reports whether the caller is on the roll.
local function asked(stock)
	return stock.roll and string.sub(stock.roll, 1, 1) ~= NOT_ASKED
end

-- unverified reports that another server than this one was trusted last.
local function unverified(stock)
	return RUN ~= '' and stock.run ~= '' and stock.run ~= RUN
end

-- meet holds the stock against what the caller has seen, and notes that it was here.
local function meet(stock, mark)
	if WHO == '' then
		if unverified(stock) and stock.state == 'on' then stock.state = 'verifying' end
		return
	end
	local now, reached, here, run = clock(), stamp(mark)
	local another = unverified(stock)
	if another then arrive(stock, now) end
	local why = seen(stock, reached, run)
	stock.here, stock.overtaken = here, reached >= tonumber(SEQ)
	if string.sub(WHO, 1, #SETTLER) ~= SETTLER then
		note(stock, 'm:' .. WHO, digits(math.max(reached, tonumber(SEQ))) .. '|' .. digits(now) .. '|' .. RUN)
		if now - here > FRESH then jumped(stock, now) end
	end
	-- Orders that are missing may be told only if the ledger freezes for that.
	local known = why and why ~= 'missing' and stock.state == 'frozen' and outrun(stock)
	if why and not known then
		freeze(stock, why)
	elseif stock.state == 'frozen' and not asked(stock) and tonumber(EPOCH) > 0 and tonumber(EPOCH) < stock.epoch then
		note(stock, 'rc:' .. WHO, '0|' .. digits(here)) -- the roll has missed it: it has seen what was before
	elseif RUN ~= '' and stock.run == '' then
		trust(stock)
	elseif another and stock.state ~= 'frozen' then
		doubt(stock, now)
	end
end

-- lazily reads what orders hardly ever need of the stock, all of it when some of it is first asked for.
local lazily = {__index = function(stock, name)
	local v = redis.call('HMGET', S, 'why', 'doubt', 'rc:' .. WHO, 'born', 'later', 'paid', 'jump')
	local read = {why = v[1] or '', doubt = v[2], roll = v[3], born = tonumber(v[4] or 0), later = v[5] or '0',
		paid = v[6] == '1', jump = v[7] or ''}
	for field, value in pairs(read) do
		if rawget(stock, field) == nil then stock[field] = value end
	end
	return read[name]
end}

-- load reads the numbers; nil when there is no ledger. Numbers without the records that they count are a fault.
local function load()
	local v = redis.call('HMGET', S, 'total', 'held', 'sold', 'state', 'epoch', 'limit', 'ver', 'run', 'opens', 'closes',
		'm:' .. WHO, 'sale')
	if not v[1] and redis.call('EXISTS', S) == 0 then
		return nil
	end
	local stock = {
		total = number(S, v[1], 'total'), held = number(S, v[2], 'held'), sold = number(S, v[3], 'sold'),
		state = v[4], epoch = number(S, v[5], 'epoch'), limit = number(S, v[6], 'limit'), ver = number(S, v[7], 'ver'),
		run = v[8] or '', marks = {}, here = 0, froze = false, by_hand = false,
		opens = number(S, v[9], 'opens'), closes = number(S, v[10], 'closes'), sale = number(S, v[12] or '0', 'sale'),
	}
	if v[4] ~= 'on' and v[4] ~= 'paused' and v[4] ~= 'ended' and v[4] ~= 'frozen' then
		fault(S, 'state is none of on, paused, ended, frozen')
	end
	stock.due = redis.call('ZCARD', X)
	if stock.held > 0 and stock.due == 0 or stock.held + stock.sold > 0 and redis.call('EXISTS', R, U) < 2 then
		fault(S, 'it counts reservations whose keys are gone')
	end
	stock.was_free, stock.was_state = stock.total - stock.held - stock.sold, stock.state
	setmetatable(stock, lazily)
	meet(stock, v[11])
	met = stock
	return stock
end

-- forget drops the marks of instances that are long gone, once there are many. Whoever comes back after LONG does not
-- look for its mark any more.
local function forget(stock)
	if redis.call('HLEN', S) <= CROWD or stock.run ~= RUN or stock.state == 'frozen' then return end
	local all, gone, past = redis.call('HGETALL', S), {}, clock() - LONG
	for i = 1, #all, 2 do
		if string.sub(all[i], 1, 2) == 'm:' and lately(all[i + 1], stock.jump) < past then gone[#gone + 1] = all[i] end
	end
	if #gone > 0 then redis.call('HDEL', S, unpack(gone)) end
end

-- make begins a ledger, later than whatever the caller has seen, in the sale that it knows.
local function make(total, limit, epoch)
	local stock = {
		total = total, held = 0, sold = 0, state = 'on', limit = limit, ver = 0, why = '', run = RUN,
		epoch = math.max(epoch, tonumber(EPOCH) + 1, tonumber(SALE) + 1), -- never less than the sale
		opens = 0, closes = 0, sale = tonumber(SALE), later = '0',
		marks = {'run', RUN},
	}
	note(stock, 'born', digits(stock.epoch))
	if stock.sale > 0 then begin_sale(stock, stock.sale) end
	if WHO ~= '' then note(stock, 'm:' .. WHO, SEQ .. '|' .. digits(clock()) .. '|' .. RUN) end
	met = stock
	return stock
end

-- sign is every reply: the caller's number, the version, the sale, why the stock froze just now, and what the script
-- answers.
local function sign(answer)
	if not met then return {SEQ, 0, 0, 0, '', answer or false} end
	if #met.marks > 0 then redis.call('HSET', S, unpack(met.marks)) end
	return {SEQ, met.epoch, met.ver, met.sale, met.froze or '', answer or false}
end
