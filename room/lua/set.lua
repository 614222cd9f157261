-- set writes a field for an operator, and writes again what Redis has lost of what operators have said; an empty value
-- takes a field away. What is said has a number, which only rises: an instance that knows a higher one than Redis says
-- it again, also before it says anything new.
-- KEYS: the room
-- ARGV: what the instance knows: its number, 0 = none; when its room was opened; word, rate and message. Then a field
-- and its value that an operator sets; without them it is only written again
-- Reply: -1 where the room is not there; 1 where something was lost, else 0

if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
local function get(field) return tonumber(redis.call('HGET', KEYS[1], field) or '0') end
local function set(field, value)
  if value == '' then
    redis.call('HDEL', KEYS[1], field)
  else
    redis.call('HSET', KEYS[1], field, value)
  end
end

local said, known = get('said'), tonumber(ARGV[1])
local lost = said < known and get('opened') == tonumber(ARGV[2])
if lost then
  said = known
  set('word', ARGV[3])
  set('rate', ARGV[4])
  set('message', ARGV[5])
end
if ARGV[6] then
  local clock = redis.call('TIME')
  said = math.max(clock[1] * 1000 + math.floor(clock[2] / 1000), said + 1)
  set(ARGV[6], ARGV[7])
end
if lost or ARGV[6] then redis.call('HSET', KEYS[1], 'said', string.format('%.0f', said)) end
return lost and 1 or 0
