-- set writes fields for an operator, or writes again what Redis has lost of them; an empty value takes a field away. What
-- is said has a number, which only rises: an instance that knows a higher one than Redis says it again.
-- KEYS: the room
-- ARGV: the number of what was lost, 0 = an operator says it now; when the room of that was opened; fields and values in
-- turn
-- Reply: 1, or 0 where the room is not there, or nothing of it was lost.

if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local function get(field) return tonumber(redis.call('HGET', KEYS[1], field) or '0') end
local said = tonumber(ARGV[1])
if said == 0 then
  local clock = redis.call('TIME')
  said = math.max(clock[1] * 1000 + math.floor(clock[2] / 1000), get('said') + 1)
elseif get('said') >= said or get('opened') ~= tonumber(ARGV[2]) then
  return 0
end
redis.call('HSET', KEYS[1], 'said', string.format('%.0f', said))
for i = 3, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[1], ARGV[i])
  else
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
return 1
