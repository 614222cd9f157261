-- audit reads, and judges nothing: the numbers as they lie there.
-- ARGV: nothing of its own
-- Reply: 1 alone when a key is of another type, else 0; total held sold state epoch limit ver, '' where there is none;
-- how many entries there are in R, U and X.

for key, kind in pairs({[S] = 'hash', [R] = 'hash', [U] = 'hash', [X] = 'zset'}) do
	local found = redis.call('TYPE', key).ok
	if found ~= kind and found ~= 'none' then return {1} end
end

local reply = {0}
for i, v in ipairs(redis.call('HMGET', S, 'total', 'held', 'sold', 'state', 'epoch', 'limit', 'ver')) do
	reply[1 + i] = v or ''
end
reply[9] = redis.call('HLEN', R) + redis.call('HLEN', U) + redis.call('ZCARD', X)
return reply
