-- join gives out numbers.
-- KEYS: the room, a HyperLogLog of people
-- ARGV: how many, the users
-- Reply: nil where the room is not there, else the first number, when it was given out (Unix ms), 1 before the start,
-- when the room was opened. No number is from before that, also where this clock ran ahead when the room was opened.

if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function has(field) return redis.call('HEXISTS', KEYS[1], field) == 1 end
local before = now < tonumber(redis.call('HGET', KEYS[1], 'starts') or '0')
if not before and has('seed') and not has('early') then -- who comes from now on is behind the draw
  redis.call('HSET', KEYS[1], 'early', redis.call('HGET', KEYS[1], 'issued') or '0')
  if not has('lost') then redis.call('HSET', KEYS[1], 'early_people', redis.call('PFCOUNT', KEYS[2])) end
end
local last = redis.call('HINCRBY', KEYS[1], 'issued', ARGV[1])
if #ARGV > 1 then redis.call('PFADD', KEYS[2], unpack(ARGV, 2)) end
local early = 0
if before and not has('early') then early = 1 end
local opened = redis.call('HGET', KEYS[1], 'opened')
return {last - tonumber(ARGV[1]) + 1, math.max(now, tonumber(opened)), early, opened}
