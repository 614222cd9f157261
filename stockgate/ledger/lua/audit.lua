-- audit reads, and judges nothing: the numbers as they lie there, and a page of what they count.
-- ARGV: part ('' = all, r, u, x), cursor of the part, entries a page
-- Reply: 1 alone when a key is of another type, else 0; total held sold state epoch limit ver, '' where there is none;
-- how many entries there are in R, U, X; the next cursor, '' when all is more than a page; then a list each of
-- serial, record, ... and user, units, ... and serial, ... that are due.

local part, cursor, most = ARGV[1], ARGV[2], tonumber(ARGV[3])

for key, kind in pairs({[S] = 'hash', [R] = 'hash', [U] = 'hash', [X] = 'zset'}) do
	local found = redis.call('TYPE', key).ok
	if found ~= kind and found ~= 'none' then return {1} end
end

local reply = {0}
for i, v in ipairs(redis.call('HMGET', S, 'total', 'held', 'sold', 'state', 'epoch', 'limit', 'ver')) do
	reply[1 + i] = v or ''
end
reply[9], reply[10], reply[11] = redis.call('HLEN', R), redis.call('HLEN', U), redis.call('ZCARD', X)

local records, users, due = {}, {}, {}
if part == 'r' then
	cursor, records = unpack(redis.call('HSCAN', R, cursor, 'COUNT', most))
elseif part == 'u' then
	cursor, users = unpack(redis.call('HSCAN', U, cursor, 'COUNT', most))
elseif part == 'x' then
	local pairs
	cursor, pairs = unpack(redis.call('ZSCAN', X, cursor, 'COUNT', most))
	for i = 1, #pairs, 2 do due[#due + 1] = pairs[i] end
elseif reply[9] + reply[10] + reply[11] <= most then
	cursor, records, users, due = '0', redis.call('HGETALL', R), redis.call('HGETALL', U), redis.call('ZRANGE', X, 0, -1)
else
	cursor = ''
end
reply[12], reply[13], reply[14], reply[15] = cursor, records, users, due
return reply
