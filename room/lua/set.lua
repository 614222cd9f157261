-- set writes a field for an operator, and writes again what Redis has lost of what operators have said; an empty value
-- takes a field away. What is said of a field has a number, which only rises: an instance that knows a higher one than
-- Redis says it again, also before it says anything new.
-- KEYS: the room
-- ARGV: when the room was opened of which the instance knows what follows: value and number of word, rate and message,
-- 0 = none. Then a field and its value that an operator sets; without them it is only written again
-- Reply: 1 where something was lost, else 0, and the number of what the operator says; nil where the room is not there

if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local function get(field) return tonumber(redis.call('HGET', KEYS[1], field) or '0') end
local function say(field, value, number)
  redis.call('HSET', KEYS[1], 'said_' .. field, string.format('%.0f', number))
  if value == '' then
    redis.call('HDEL', KEYS[1], field)
  else
    redis.call('HSET', KEYS[1], field, value)
  end
end

local lost, number = 0, 0
if get('opened') == tonumber(ARGV[1]) then
  for i, field in ipairs({'word', 'rate', 'message'}) do
    local known = tonumber(ARGV[2 * i + 1])
    if get('said_' .. field) < known then
      lost = 1
      say(field, ARGV[2 * i], known)
    end
  end
end
if ARGV[8] then
  local clock = redis.call('TIME')
  number = math.max(clock[1] * 1000 + math.floor(clock[2] / 1000), get('said_' .. ARGV[8]) + 1)
  say(ARGV[8], ARGV[9], number)
end
return {lost, number}
