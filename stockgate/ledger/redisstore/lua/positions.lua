-- positions tells where orders are. It reads.
-- ARGV: n, n serials
-- KEYS[10 + i] is where the answer to the i-th is kept.
-- Reply: of each: record or '', where it is, how many wait before it, the answer to one that is decided or ''.

local n = tonumber(ARGV[1])
local reply, records = {}, redis.call('HMGET', R, unpack(ARGV, 2, 1 + n))
for i = 1, n do
	local serial, record, where, ahead, answer = ARGV[1 + i], records[i] or '', '', 0, ''
	if string.sub(record, 1, 1) == 'H' then
		local rank, due = redis.call('ZRANK', W, serial), redis.call('ZSCORE', K, serial)
		if rank then
			where, ahead = 'queued', rank
		elseif redis.call('ZSCORE', L, serial) then
			where = 'delivering'
		elseif due then
			where = due == NEVER and 'stuck' or 'unknown'
		end
	elseif record ~= '' then
		answer = redis.call('GET', KEYS[10 + i]) or ''
	end
	for _, v in ipairs({record, where, ahead, answer}) do reply[#reply + 1] = v end
end
return reply
