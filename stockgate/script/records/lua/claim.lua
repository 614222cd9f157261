-- claim hands out orders whose units are to be given back now. ARGV: now, lease, limit
-- Reply: name, payload, tries|since|begun of each, as it was before.
local reply = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', O, '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])) do
	local owed = redis.call('HGET', T, name) or '0|' .. ARGV[1] .. '|0'
	local payload = redis.call('HGET', D, name) or ''
	redis.call('HSET', T, name, (string.gsub(owed, '%d$', '1')))
	redis.call('ZADD', O, ARGV[2], name)
	local n = #reply
	reply[n + 1], reply[n + 2], reply[n + 3] = name, payload, owed
end
return reply
