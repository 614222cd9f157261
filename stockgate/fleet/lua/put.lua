-- put adds a change, or takes the place of the one of the same name; or it adds a task.
-- KEYS: a hash of the changes, or of the tasks: of each name "number end gone state signature text", end and gone in
-- milliseconds of this clock, the state "on" or "off"; and "#version", "number random", of which the number is the highest of all
-- ARGV: the name ("" = a task), the signature and the text, its end in milliseconds of this clock, for how many it is kept
-- after that, how many may hold at a time, how many are kept at most, text that is random
-- Reply: the number of the change; an error FULL where there is no room.
--
-- Numbers rise, also when Redis has lost all of them: they are at least this clock.

local clock = redis.call('TIME')
local now, hold, kept = clock[1] * 1000 + math.floor(clock[2] / 1000), 0, 0
local ends = tonumber(ARGV[3])
local gone = ends + ARGV[4]
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if all[i] ~= '#version' and all[i] ~= ARGV[1] then
    local till, leaves, state = string.match(all[i + 1], '^%d+ (%d+) (%d+) (%a+) ')
    if not leaves or tonumber(leaves) <= now then
      redis.call('HDEL', KEYS[1], all[i])
    else
      kept = kept + 1
      if state == 'on' and tonumber(till) > now then hold = hold + 1 end
    end
  end
end
if hold >= tonumber(ARGV[5]) or kept >= tonumber(ARGV[6]) then return redis.error_reply('FULL') end
local last = tonumber(string.match(redis.call('HGET', KEYS[1], '#version') or '0', '^%d+'))
local number = math.max(now, last + 1)
local text = string.format('%d', number)
redis.call('HSET', KEYS[1], '#version', text .. ' ' .. ARGV[7],
  ARGV[1] == '' and text or ARGV[1], string.format('%d %d %d on ', number, ends, gone) .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], string.format('%d', math.max(redis.call('PTTL', KEYS[1]), gone - now + 3600000)))
return text
