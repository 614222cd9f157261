-- put adds a change, or takes the place of the one of the same name.
-- KEYS: a hash of the changes: of each name "number end gone text", end and gone in milliseconds of this clock, and
-- "#version", the highest number
-- ARGV: the name ("" = a task), the text, for how many milliseconds it holds, how many of its kind there are at most, for
-- how many milliseconds it is kept after its end
-- Reply: the number of the change; an error FULL where there is no room.
--
-- Numbers rise, also when Redis has lost all of them: they are at least this clock.

local clock = redis.call('TIME')
local now, n = clock[1] * 1000 + math.floor(clock[2] / 1000), 0
local ends = now + ARGV[3]
local gone = ends + ARGV[5]
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if all[i] ~= '#version' then
    local leaves = tonumber(string.match(all[i + 1], '^%d+ %d+ (%d+) '))
    local task = string.sub(all[i], 1, 5) == 'task '
    if not leaves or leaves <= now then
      redis.call('HDEL', KEYS[1], all[i])
    elseif all[i] ~= ARGV[1] and task == (ARGV[1] == '') then
      n = n + 1
    end
  end
end
if n >= tonumber(ARGV[4]) then return redis.error_reply('FULL') end
local number = math.max(now, tonumber(redis.call('HGET', KEYS[1], '#version') or '0') + 1)
local text = string.format('%d', number)
local name = ARGV[1]
if name == '' then name = 'task ' .. text end
redis.call('HSET', KEYS[1], '#version', text, name, string.format('%d %d %d ', number, ends, gone) .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], string.format('%d', math.max(redis.call('PTTL', KEYS[1]), gone - now + 3600000)))
return text
