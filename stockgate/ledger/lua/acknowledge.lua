-- acknowledge forgets the changes that every consumer has: those up to a position, and of each consumer group those
-- before its oldest unfinished one. The last change stays, so that a new ledger finds the epoch of the one before.
-- ARGV: epoch, ver of the position
-- Reply: false when there is no stream, else how many changes stay; -1 when the position is ahead of the stream.

-- pair reads an id, which is exact in no single number.
local function pair(id)
	local epoch, ver = string.match(id, '^(%d+)-(%d+)$')
	return tonumber(epoch), tonumber(ver)
end

local function before(a, b)
	local a1, a2 = pair(a)
	local b1, b2 = pair(b)
	return a1 < b1 or a1 == b1 and a2 < b2
end

-- following is the least id after id.
local function following(id)
	local epoch, ver = pair(id)
	return string.format('%d-%d', epoch, ver + 1)
end

local last = redis.call('XREVRANGE', Q, '+', '-', 'COUNT', 1)[1]
if not last then
	return false
end
local position, from = ARGV[1] .. '-' .. ARGV[2], last[1]
if before(from, position) then
	return {-1}
end
if before(following(position), from) then from = following(position) end

-- needs is the first change that a group has not finished.
local function needs(group)
	local pending = redis.call('XPENDING', Q, group.name)
	if pending[1] > 0 then return pending[2] end
	return following(group['last-delivered-id'])
end

for _, flat in ipairs(redis.call('XINFO', 'GROUPS', Q)) do
	local group = {}
	for i = 1, #flat, 2 do group[flat[i]] = flat[i + 1] end
	local id = needs(group)
	if before(id, from) then from = id end
end
redis.call('XTRIM', Q, 'MINID', from)
return {redis.call('XLEN', Q)}
