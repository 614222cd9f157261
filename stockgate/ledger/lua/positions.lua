-- positions tells where orders are. It reads.
-- ARGV: n, n serials
-- Reply: of each: record or '', where it is, how many wait before it, the answer to one that is decided or ''.

local n = tonumber(ARGV[1])
local reply, records = {}, redis.call('HMGET', R, unpack(ARGV, 2, 1 + n))
for i = 1, n do
	local serial, record, where, ahead, text = ARGV[1 + i], records[i] or '', '', 0, ''
	if string.sub(record, 1, 1) == 'H' then
		local place = redis.call('ZSCORE', W, serial)
		local score = tonumber(place or 0)
		if score >= ASKED then
			where = place == NEVER and 'stuck' or 'unknown'
		elseif score >= LEASED then
			where = 'delivering'
		elseif place then
			where, ahead = 'queued', redis.call('ZRANK', W, serial)
		end
	elseif record ~= '' then
		text = answer(serial)
	end
	for _, v in ipairs({record, where, ahead, text}) do reply[#reply + 1] = v end
end
return reply
